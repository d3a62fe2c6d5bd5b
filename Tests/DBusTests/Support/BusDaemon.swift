import ChildProcess
import DBus
import Foundation
import TestSupport
import Testing

/// A bus of its own for one test, in a folder of its own.
final class BusDaemon: Sendable {
  let address: DBusAddress
  let addressText: String
  private let process: ChildProcess
  private let folder = TemporaryFolder()

  struct DidNotStart: Error {
    let errors: String
  }

  private static let path = "/usr/bin/dbus-daemon"

  /// For tests that need a bus.
  static let isInstalled = ConditionTrait.enabled(
    if: FileManager.default.isExecutableFile(atPath: path), "dbus-daemon is not installed")

  init() async throws {
    let configuration = """
      <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
       "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
      <busconfig>
        <type>bluehaul-test</type>
        <listen>unix:path=\(folder.path("bus"))</listen>
        <auth>EXTERNAL</auth>
        <policy context="default">
          <allow user="*"/>
          <allow own="*"/>
          <allow send_destination="*"/>
          <allow receive_type="method_call"/>
          <allow receive_type="method_return"/>
          <allow receive_type="error"/>
          <allow receive_type="signal"/>
        </policy>
        <limit name="max_replies_per_connection">50000</limit>
        <limit name="max_incoming_bytes">1000000000</limit>
        <limit name="max_outgoing_bytes">1000000000</limit>
        <limit name="max_message_unix_fds">64</limit>
      </busconfig>
      """
    let file = try folder.write(Data(configuration.utf8), "bus.conf")
    process = try ChildProcess(
      Self.path, ["--nofork", "--nosyslog", "--print-address=1", "--config-file=\(file)"])
    guard let line = await process.line(where: { $0.hasPrefix("unix:") }) else {
      throw DidNotStart(errors: process.errors())
    }
    addressText = line
    address = .address(line)
  }

  deinit { process.send(signal: SIGKILL) }

  func kill() { process.send(signal: SIGKILL) }

  /// Stops it from reading and writing; it is killed all the same.
  func stop() { process.send(signal: SIGSTOP) }

  func connect(
    clock: any DBusClock = SystemDBusClock(), limits: DBusLimits = DBusLimits()
  ) async throws -> DBusConnection {
    try await DBusConnection.open(address, clock: clock, limits: limits)
  }
}

/// Values in the order in which handlers made them, to be awaited.
final class Inbox<Element: Sendable>: Sendable {
  private let stream: AsyncStream<Element>
  private let continuation: AsyncStream<Element>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream(of: Element.self) }

  func put(_ element: Element) { continuation.yield(element) }

  func next() async throws -> Element {
    var iterator = stream.makeAsyncIterator()
    return try #require(await iterator.next())
  }

  func next(_ count: Int) async throws -> [Element] {
    var elements: [Element] = []
    while elements.count < count { elements.append(try await next()) }
    return elements
  }
}

/// The error that a call ends with.
func failure<Success>(_ body: () async throws -> Success) async -> DBusError? {
  do {
    _ = try await body()
    return nil
  } catch { return error as? DBusError }
}
