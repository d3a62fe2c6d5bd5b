internal import ChildProcess
package import DBus
internal import Foundation
internal import TestSupport

/// A bus of its own for one test, in a folder of its own.
package final class PrivateBus: Sendable {
  package let address: DBusAddress
  package let addressText: String
  private let process: ChildProcess
  private let folder = TemporaryFolder()

  package struct DidNotStart: Error {
    package let errors: String
  }

  private static let path = "/usr/bin/dbus-daemon"

  /// Tests that need a bus are skipped without it.
  package static let isInstalled = FileManager.default.isExecutableFile(atPath: path)
  package static let whatIsMissing = "dbus-daemon is not installed"

  /// Starts a bus that lets everybody do everything but what `policy`, rules as in dbus-daemon(1), denies.
  package init(policy: String = "") async throws {
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
          \(policy)
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

  package func kill() { process.send(signal: SIGKILL) }

  /// Stops it from reading and writing; it is killed all the same.
  package func stop() { process.send(signal: SIGSTOP) }

  package func connect(
    clock: any DBusClock = SystemDBusClock(), limits: DBusLimits = DBusLimits()
  ) async throws -> DBusConnection {
    try await DBusConnection.open(address, clock: clock, limits: limits)
  }
}
