internal import DBus

/// What bluetoothd says along with a call for a central: options of `ReadValue`, `WriteValue` and `AcquireNotify`.
///
/// Source: org.bluez.GattCharacteristic(5).
struct ServerCall: Hashable, Sendable {
  /// The central.
  let device: ObjectPath
  /// Where in the value it reads or writes.
  let offset: Int
  /// The ATT MTU of its link.
  let mtu: Int?
  /// Only a question whether a prepared write would be allowed; nothing is written yet.
  let isPrepare: Bool

  /// Throws with kind ``DBusError/Kind/unexpectedReply`` where there is no device.
  init(_ options: [String: DBusVariant]) throws(DBusError) {
    guard let device = options["device"] else {
      throw DBusError(name: DBusErrorName.invalidArguments, message: "the call names no device")
    }
    self.device = try ObjectPath(device.content)
    offset = Int(try options["offset"].map { value throws(DBusError) in try UInt16(value.content) } ?? 0)
    mtu = try options["mtu"].map { value throws(DBusError) in Int(try UInt16(value.content)) }
    isPrepare =
      try options["prepare-authorize"].map { value throws(DBusError) in try Bool(value.content) } ?? false
  }
}
