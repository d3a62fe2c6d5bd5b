import ChildProcess
import DBus
import Foundation
import Radio
import Testing

@testable import BlueZRadio

/// Buses that do not let this user do what it needs: how that reaches whoever is on the radio.
@Suite(
  .timeLimit(.minutes(30)),
  .enabled(if: FileManager.default.isExecutableFile(atPath: GuardedBus.path), "dbus-daemon is not installed"))
struct PermissionOnBusTests {
  /// The policy of the bus forbids to ask the daemon for its objects, or to hear of it at all.
  @Test(arguments: [
    #"<deny send_destination="org.bluez" send_interface="org.freedesktop.DBus.ObjectManager"/>"#,
    #"<deny send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus" send_member="AddMatch"/>"#,
  ])
  func aBusThatTurnsTheProgramAwayIsDenied(policy: String) async throws {
    let bus = try await GuardedBus(policy: policy)
    // Somebody has the name; it is never asked.
    let daemon = try await DBusConnection.open(bus.address)
    #expect(try await daemon.requestName("org.bluez") == .primaryOwner)
    let (lines, line) = AsyncStream<String>.makeStream()
    let radio = try BlueZRadio(bus: bus.address) { line.yield($0) }
    #expect(radio.authorization == .allowed)
    let (states, state) = AsyncStream<AdapterState>.makeStream()
    let central = radio.makeCentral { if case .adapterStateChanged(let new) = $0 { state.yield(new) } }
    var told = states.makeAsyncIterator()
    #expect(await told.next() == .unauthorized)
    #expect(central.adapterState == .unauthorized)
    #expect(radio.authorization == .denied)
    var words = lines.makeAsyncIterator()
    #expect(await words.next()?.contains("bluetoothd") == true)
    withExtendedLifetime(daemon) {}
  }

  @Test("where there is no daemon, nobody forbids anything")
  func aBusWithoutADaemonIsNoRefusal() async throws {
    let bus = try await GuardedBus(policy: "")
    let radio = try BlueZRadio(bus: bus.address)
    let (states, state) = AsyncStream<AdapterState>.makeStream()
    let peripheral = radio.makePeripheral { if case .adapterStateChanged(let new) = $0 { state.yield(new) } }
    var told = states.makeAsyncIterator()
    #expect(await told.next() == .unsupported)
    #expect(radio.authorization == .allowed)
    withExtendedLifetime(peripheral) {}
  }
}

/// A bus of its own with rules of its own, in a folder of its own.
private final class GuardedBus: Sendable {
  static let path = "/usr/bin/dbus-daemon"

  let address: DBusAddress
  private let process: ChildProcess
  private let folder: URL

  init(policy: String) async throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "bluehaul-guarded-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let configuration = folder.appending(path: "bus.conf")
    try """
    <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
     "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
    <busconfig>
      <type>bluehaul-test</type>
      <listen>unix:path=\(folder.path)/bus</listen>
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
    </busconfig>
    """.write(to: configuration, atomically: true, encoding: .utf8)
    process = try ChildProcess(
      Self.path, ["--nofork", "--nosyslog", "--print-address=1", "--config-file=\(configuration.path)"])
    let line = await process.line { $0.hasPrefix("unix:") }
    address = .address(try #require(line, "\(process.errors())"))
  }

  deinit {
    process.send(signal: SIGKILL)
    try? FileManager.default.removeItem(at: folder)
  }
}
