public import Foundation

/// The domain of failures of the link and of the API.
public let CBErrorDomain: String = "CBErrorDomain"

/// A failure of the link or of the API.
public struct CBError: CustomNSError, Hashable, @unchecked Sendable {
  // Sendable: an NSError never changes.
  /// The error as an object.
  public let _nsError: NSError

  /// Wraps an error of the domain ``CBErrorDomain``.
  public init(_nsError error: NSError) { _nsError = error }

  /// Makes an error; without a text in `userInfo` it gets the one of its code.
  public init(_ code: Code, userInfo: [String: Any] = [:]) {
    var userInfo = userInfo
    if userInfo[NSLocalizedDescriptionKey] == nil { userInfo[NSLocalizedDescriptionKey] = code.text }
    _nsError = NSError(domain: CBErrorDomain, code: code.rawValue, userInfo: userInfo)
  }

  /// What kind of failure it is.
  public var code: Code { Code(rawValue: _nsError.code) ?? .unknown }
  /// The number of the kind.
  public var errorCode: Int { _nsError.code }
  /// Texts and more, by keys of `NSError`.
  public var userInfo: [String: Any] { _nsError.userInfo }
  public var errorUserInfo: [String: Any] { _nsError.userInfo }
  public static var errorDomain: String { CBErrorDomain }
  public var localizedDescription: String { _nsError.localizedDescription }

  /// Kinds of failures.
  public enum Code: Int, Sendable {
    case unknown = 0
    case invalidParameters = 1
    case invalidHandle = 2
    case notConnected = 3
    case outOfSpace = 4
    case operationCancelled = 5
    /// The link was lost: nothing heard within the supervision timeout.
    case connectionTimeout = 6
    /// The peer ended the link.
    case peripheralDisconnected = 7
    case uuidNotAllowed = 8
    case alreadyAdvertising = 9
    case connectionFailed = 10
    case connectionLimitReached = 11
    /// Misspelt in Apple's interface too; ``unknownDevice`` is the same.
    case unkownDevice = 12
    case operationNotSupported = 13
    case peerRemovedPairingInformation = 14
    case encryptionTimedOut = 15
    case tooManyLEPairedDevices = 16
    case leGattExceededBackgroundNotificationLimit = 17
    case leGattNearBackgroundNotificationLimit = 18

    /// No device of that identifier is known.
    public static var unknownDevice: Code { .unkownDevice }

    /// Matches an error of this code: `catch CBError.notConnected`.
    public static func ~= (match: Code, error: any Error) -> Bool {
      (error as? CBError)?.code == match
    }
  }

  public static var unknown: Code { .unknown }
  public static var invalidParameters: Code { .invalidParameters }
  public static var invalidHandle: Code { .invalidHandle }
  public static var notConnected: Code { .notConnected }
  public static var outOfSpace: Code { .outOfSpace }
  public static var operationCancelled: Code { .operationCancelled }
  public static var connectionTimeout: Code { .connectionTimeout }
  public static var peripheralDisconnected: Code { .peripheralDisconnected }
  public static var uuidNotAllowed: Code { .uuidNotAllowed }
  public static var alreadyAdvertising: Code { .alreadyAdvertising }
  public static var connectionFailed: Code { .connectionFailed }
  public static var connectionLimitReached: Code { .connectionLimitReached }
  public static var unkownDevice: Code { .unkownDevice }
  public static var unknownDevice: Code { .unkownDevice }
  public static var operationNotSupported: Code { .operationNotSupported }
  public static var peerRemovedPairingInformation: Code { .peerRemovedPairingInformation }
  public static var encryptionTimedOut: Code { .encryptionTimedOut }
  public static var tooManyLEPairedDevices: Code { .tooManyLEPairedDevices }
  public static var leGattExceededBackgroundNotificationLimit: Code {
    .leGattExceededBackgroundNotificationLimit
  }
  public static var leGattNearBackgroundNotificationLimit: Code { .leGattNearBackgroundNotificationLimit }
}

extension CBError.Code {
  /// What the code means, in a sentence.
  var text: String {
    switch self {
    case .unknown: "Something went wrong that has no code of its own."
    case .invalidParameters: "A parameter is not valid."
    case .invalidHandle: "The attribute handle is not valid."
    case .notConnected: "There is no link to the device."
    case .outOfSpace: "There is no room left for it."
    case .operationCancelled: "The operation was cancelled."
    case .connectionTimeout: "The link was lost: nothing was heard from the device in time."
    case .peripheralDisconnected: "The device ended the link."
    case .uuidNotAllowed: "The UUID is reserved for the system."
    case .alreadyAdvertising: "Advertising is already on."
    case .connectionFailed: "The link could not be made."
    case .connectionLimitReached: "No more links can be had."
    case .unkownDevice: "The device is not known."
    case .operationNotSupported: "The operation is not supported."
    case .peerRemovedPairingInformation: "The device has removed the pairing."
    case .encryptionTimedOut: "The link was not encrypted in time."
    case .tooManyLEPairedDevices: "Too many devices are paired."
    case .leGattExceededBackgroundNotificationLimit: "Too many notifications came in the background."
    case .leGattNearBackgroundNotificationLimit: "The limit of background notifications is near."
    }
  }
}

extension CBError: _ObjectiveCBridgeable {
  // Swift's casts use these: they make `as? NSError` and, back from an `NSError`, `as? CBError` work without Objective-C.

  public func _bridgeToObjectiveC() -> NSError { _nsError }

  public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout CBError?) {
    _ = _conditionallyBridgeFromObjectiveC(source, result: &result)
  }

  public static func _conditionallyBridgeFromObjectiveC(_ source: NSError, result: inout CBError?) -> Bool {
    guard source.domain == CBErrorDomain else { return false }
    result = CBError(_nsError: source)
    return true
  }

  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> CBError {
    source.map(CBError.init(_nsError:)) ?? CBError(.unknown)
  }
}
