public import Foundation

/// The domain of failures that the Attribute Protocol reports.
public let CBATTErrorDomain: String = "CBATTErrorDomain"

/// An error of the Attribute Protocol (Core Vol 3 Part F 3.4.1.1).
///
/// Codes of applications (0x80...0x9F) and profiles (0xE0...0xFF) keep their number in ``errorCode``.
public struct CBATTError: CustomNSError, Hashable, @unchecked Sendable {
  // Sendable: an NSError never changes.
  /// The error as an object.
  public let _nsError: NSError

  /// Wraps an error of the domain ``CBATTErrorDomain``.
  public init(_nsError error: NSError) { _nsError = error }

  /// Makes an error; without a text in `userInfo` it gets the one of its code.
  public init(_ code: Code, userInfo: [String: Any] = [:]) {
    var userInfo = userInfo
    if userInfo[NSLocalizedDescriptionKey] == nil { userInfo[NSLocalizedDescriptionKey] = code.text }
    _nsError = NSError(domain: CBATTErrorDomain, code: code.rawValue, userInfo: userInfo)
  }

  /// What kind of failure it is.
  public var code: Code { Code(rawValue: _nsError.code) ?? .unlikelyError }
  /// The number on the air.
  public var errorCode: Int { _nsError.code }
  /// Texts and more, by keys of `NSError`.
  public var userInfo: [String: Any] { _nsError.userInfo }
  public var errorUserInfo: [String: Any] { _nsError.userInfo }
  public static var errorDomain: String { CBATTErrorDomain }
  public var localizedDescription: String { _nsError.localizedDescription }

  /// Kinds of failures; also the results of ``CBPeripheralManager/respond(to:withResult:)``.
  public enum Code: RawRepresentable, Hashable, Sendable {
    case success
    case invalidHandle
    case readNotPermitted
    case writeNotPermitted
    case invalidPdu
    case insufficientAuthentication
    case requestNotSupported
    case invalidOffset
    case insufficientAuthorization
    case prepareQueueFull
    case attributeNotFound
    case attributeNotLong
    case insufficientEncryptionKeySize
    case invalidAttributeValueLength
    case unlikelyError
    case insufficientEncryption
    case unsupportedGroupType
    case insufficientResources
    /// A code without a name, such as an application's: reached by ``init(rawValue:)``, never named by programs.
    case _other(UInt8)

    private static let named: [Code] = [
      .success, .invalidHandle, .readNotPermitted, .writeNotPermitted, .invalidPdu,
      .insufficientAuthentication, .requestNotSupported, .invalidOffset, .insufficientAuthorization,
      .prepareQueueFull, .attributeNotFound, .attributeNotLong, .insufficientEncryptionKeySize,
      .invalidAttributeValueLength, .unlikelyError, .insufficientEncryption, .unsupportedGroupType,
      .insufficientResources,
    ]

    /// Takes the number on the air, one octet; nil for any other number.
    public init?(rawValue: Int) {
      guard let octet = UInt8(exactly: rawValue) else { return nil }
      self = octet < Self.named.count ? Self.named[Int(octet)] : ._other(octet)
    }

    /// The number on the air.
    public var rawValue: Int {
      switch self {
      case .success: 0x00
      case .invalidHandle: 0x01
      case .readNotPermitted: 0x02
      case .writeNotPermitted: 0x03
      case .invalidPdu: 0x04
      case .insufficientAuthentication: 0x05
      case .requestNotSupported: 0x06
      case .invalidOffset: 0x07
      case .insufficientAuthorization: 0x08
      case .prepareQueueFull: 0x09
      case .attributeNotFound: 0x0A
      case .attributeNotLong: 0x0B
      case .insufficientEncryptionKeySize: 0x0C
      case .invalidAttributeValueLength: 0x0D
      case .unlikelyError: 0x0E
      case .insufficientEncryption: 0x0F
      case .unsupportedGroupType: 0x10
      case .insufficientResources: 0x11
      case ._other(let octet): Int(octet)
      }
    }

    /// Matches an error of this code: `catch CBATTError.readNotPermitted`.
    public static func ~= (match: Code, error: any Error) -> Bool {
      (error as? CBATTError)?.code == match
    }
  }

  public static var success: Code { .success }
  public static var invalidHandle: Code { .invalidHandle }
  public static var readNotPermitted: Code { .readNotPermitted }
  public static var writeNotPermitted: Code { .writeNotPermitted }
  public static var invalidPdu: Code { .invalidPdu }
  public static var insufficientAuthentication: Code { .insufficientAuthentication }
  public static var requestNotSupported: Code { .requestNotSupported }
  public static var invalidOffset: Code { .invalidOffset }
  public static var insufficientAuthorization: Code { .insufficientAuthorization }
  public static var prepareQueueFull: Code { .prepareQueueFull }
  public static var attributeNotFound: Code { .attributeNotFound }
  public static var attributeNotLong: Code { .attributeNotLong }
  public static var insufficientEncryptionKeySize: Code { .insufficientEncryptionKeySize }
  public static var invalidAttributeValueLength: Code { .invalidAttributeValueLength }
  public static var unlikelyError: Code { .unlikelyError }
  public static var insufficientEncryption: Code { .insufficientEncryption }
  public static var unsupportedGroupType: Code { .unsupportedGroupType }
  public static var insufficientResources: Code { .insufficientResources }
}

extension CBATTError.Code {
  /// What the code means, in a sentence.
  var text: String {
    switch self {
    case .success: "Success."
    case .invalidHandle: "There is no attribute of that handle."
    case .readNotPermitted: "The attribute cannot be read."
    case .writeNotPermitted: "The attribute cannot be written."
    case .invalidPdu: "The attribute PDU was not valid."
    case .insufficientAuthentication: "The attribute needs an authenticated link."
    case .requestNotSupported: "The request is not supported."
    case .invalidOffset: "The offset lies beyond the end of the value."
    case .insufficientAuthorization: "The attribute needs authorisation."
    case .prepareQueueFull: "The queue of prepared writes is full."
    case .attributeNotFound: "There is no such attribute in the range."
    case .attributeNotLong: "The attribute cannot be read in parts."
    case .insufficientEncryptionKeySize: "The encryption key of the link is too short."
    case .invalidAttributeValueLength: "The length of the value is not valid for the attribute."
    case .unlikelyError: "The request met an error that was unlikely."
    case .insufficientEncryption: "The attribute needs an encrypted link."
    case .unsupportedGroupType: "The attribute type is no grouping attribute."
    case .insufficientResources: "The peer lacks the resources for the request."
    case ._other(let octet): "The peer answered with the error code 0x\(String(octet, radix: 16))."
    }
  }
}

extension CBATTError: _ObjectiveCBridgeable {
  // As for CBError.

  public func _bridgeToObjectiveC() -> NSError { _nsError }

  public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout CBATTError?) {
    _ = _conditionallyBridgeFromObjectiveC(source, result: &result)
  }

  public static func _conditionallyBridgeFromObjectiveC(
    _ source: NSError, result: inout CBATTError?
  ) -> Bool {
    guard source.domain == CBATTErrorDomain else { return false }
    result = CBATTError(_nsError: source)
    return true
  }

  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> CBATTError {
    source.map(CBATTError.init(_nsError:)) ?? CBATTError(.unlikelyError)
  }
}
