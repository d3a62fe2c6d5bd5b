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

  /// Reads options (`a{sv}`). They come with every value that a central writes, so no dictionary is made of them.
  ///
  /// Throws with kind ``DBusError/Kind/unexpectedReply`` where one has another type, and where there is no device.
  init(_ options: DBusValue) throws(DBusError) {
    guard case .dictionary(key: .string, value: .variant, let entries) = options else {
      throw DBusError(name: DBusErrorName.invalidArguments, message: "the call has no options")
    }
    var device: ObjectPath?
    var offset: UInt16 = 0
    var mtu: UInt16?
    var isPrepare = false
    for entry in entries {
      guard case .string(let name) = entry.key, case .variant(let value) = entry.value else { continue }
      switch name {
      case "device": device = try ObjectPath(value)
      case "offset": offset = try UInt16(value)
      case "mtu": mtu = try UInt16(value)
      case "prepare-authorize": isPrepare = try Bool(value)
      default: break
      }
    }
    guard let device else {
      throw DBusError(name: DBusErrorName.invalidArguments, message: "the call names no device")
    }
    self.device = device
    self.offset = Int(offset)
    self.mtu = mtu.map(Int.init)
    self.isPrepare = isPrepare
  }
}
