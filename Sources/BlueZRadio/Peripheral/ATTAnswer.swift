internal import DBus
internal import Radio

/// Refusals of requests in the words from which bluetoothd makes ATT error codes again.
///
/// Source: org.bluez.GattCharacteristic(5), "ReadValue", "WriteValue"; `dbus_error_to_att_ecode` of the daemon. It knows: application codes
/// 0x80 to 0x9F (older ones: only 0x80), 0x06, 0x07, 0x08, 0x0D, 0xFE, and "not permitted" as 0x02 for reads and 0x03 for writes. Every other code
/// reaches the central as 0x0E, unlikely error.
enum ATTAnswer {
  enum Access { case read, write }

  /// The code of a procedure that is already in progress (Core Supplement Part B 1.2).
  static let alreadyInProgress = ATTErrorCode(rawValue: 0xFE)

  static func refusal(_ code: ATTErrorCode, of access: Access) -> DBusError {
    DBusError(name: name(of: code, access), message: text(of: code))
  }

  /// What the central is told.
  static func codeOnAir(_ code: ATTErrorCode, of access: Access) -> ATTErrorCode {
    name(of: code, access) == DBusErrorName.failed ? .unlikelyError : code
  }

  private static func name(of code: ATTErrorCode, _ access: Access) -> String {
    switch code {
    case .invalidOffset: BlueZ.Failure.invalidOffset
    case .invalidAttributeValueLength: BlueZ.Failure.invalidValueLength
    case .requestNotSupported: BlueZ.Failure.notSupported
    case .insufficientAuthorization: BlueZ.Failure.notAuthorized
    case .readNotPermitted where access == .read: BlueZ.Failure.notPermitted
    case .writeNotPermitted where access == .write: BlueZ.Failure.notPermitted
    case alreadyInProgress: BlueZ.Failure.inProgress
    case _ where applicationCodes.contains(code.rawValue): BlueZ.Failure.failed
    default: DBusErrorName.failed
    }
  }

  private static let applicationCodes: ClosedRange<UInt8> = 0x80...0x9F

  /// Of an application code the number alone, which the daemon reads.
  private static func text(of code: ATTErrorCode) -> String {
    applicationCodes.contains(code.rawValue) ? "0x" + String(code.rawValue, radix: 16) : "\(code)"
  }
}
