import DBus
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

/// Buses that do not let this user do what it needs: how that reaches whoever is on the radio.
@Suite(
  PrivateBus.isThere, .timeLimit(.minutes(30)))
struct PermissionOnBusTests {
  /// The policy of the bus forbids to ask the daemon for its objects, or to hear of it at all.
  @Test(arguments: [
    #"<deny send_destination="org.bluez" send_interface="org.freedesktop.DBus.ObjectManager"/>"#,
    #"<deny send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus" send_member="AddMatch"/>"#,
  ])
  func aBusThatTurnsTheProgramAwayIsDenied(policy: String) async throws {
    let bus = try await PrivateBus(policy: policy)
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
    let bus = try await PrivateBus()
    let radio = try BlueZRadio(bus: bus.address)
    let (states, state) = AsyncStream<AdapterState>.makeStream()
    let peripheral = radio.makePeripheral { if case .adapterStateChanged(let new) = $0 { state.yield(new) } }
    var told = states.makeAsyncIterator()
    #expect(await told.next() == .unsupported)
    #expect(radio.authorization == .allowed)
    withExtendedLifetime(peripheral) {}
  }
}
