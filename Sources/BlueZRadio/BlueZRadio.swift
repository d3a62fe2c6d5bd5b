public import DBus
internal import Dispatch
public import Radio

/// The radio of a Linux host: bluetoothd over D-Bus for GATT and advertising, the kernel's sockets for L2CAP channels.
///
/// Source: the manual pages org.bluez.*(5) and the kernel's `bluetooth(7)` sockets.
public final class BlueZRadio: Radio {
  public let name: String
  public let clock: any RadioClock
  let host: BlueZHost
  // After the host, so that it is let go after it.
  private let lease: HostLease

  /// Makes the radio of an adapter; nothing is waited for.
  ///
  /// - Parameters:
  ///   - adapter: the kernel's name of it, such as `hci1`; nil for the first that is switched on.
  ///   - bus: where bluetoothd is.
  ///   - note: takes lines for people, such as why the radio cannot be used; called on a queue of the radio.
  /// - Throws: ``RadioError`` where `adapter` is no such name.
  public init(
    adapter: String? = nil, bus: DBusAddress = .system,
    note: @escaping @Sendable (String) -> Void = { _ in }
  ) throws(RadioError) {
    if let adapter, !Self.canBeAdapter(adapter) {
      throw RadioError(.invalidParameters, "\"\(adapter)\" is no adapter: give hci0, hci1, ...")
    }
    name = adapter.map { "bluez:\($0)" } ?? "bluez"
    clock = WallClock()
    host = BlueZHost(adapter: adapter, bus: bus, clock: clock, note: note)
    lease = HostLease(host)
  }
}

extension BlueZRadio {
  /// Whether the kernel may call an adapter so: `hci0`, `hci1`, ...
  public static func canBeAdapter(_ name: String) -> Bool {
    name.hasPrefix("hci") && UInt16(name.dropFirst(3)).map { "hci\($0)" == name } == true
  }

  public var authorization: RadioAuthorization { host.snapshot.authorization }

  public func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio {
    BlueZCentral(host, sink: sink)
  }

  public func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio {
    BlueZPeripheral(host, sink: sink)
  }
}
