/// A failure below GATT: of the link, the adapter or a command.
public struct RadioError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What kind of failure it is; a caller decides by this, never by the text.
  public enum Code: Sendable, Hashable {
    /// A parameter is outside what the radio or the specification takes.
    case invalidParameters
    /// There is no link to that peer.
    case notConnected
    /// A local store (advertising data, attribute table, channel table) is full.
    case outOfSpace
    /// The operation was ended by its own side.
    case cancelled
    /// The link was lost: nothing heard within the supervision timeout.
    case supervisionTimeout
    /// The peer ended the link.
    case peerTerminated
    /// The link could not be made.
    case connectionFailed
    /// No more links can be had.
    case connectionLimit
    /// No device of that identifier is known.
    case unknownPeer
    /// The peer or the radio lacks the feature.
    case notSupported
    /// Already advertising.
    case alreadyAdvertising
    /// The UUID is reserved for the system.
    case uuidNotAllowed
    /// The peer refuses the channel: no such PSM.
    case psmNotSupported
    /// The peer refuses the channel: security.
    case insufficientSecurity
    /// The peer refuses the channel: resources.
    case noResources
    /// The peer did not answer in the time that the specification gives it.
    case timeout
    /// The adapter is off, gone or not permitted.
    case notPoweredOn
    /// Anything else; the text says what.
    case other
  }

  /// The kind.
  public var code: Code
  /// What happened, in words and with values, for a person.
  public var message: String

  /// Makes an error.
  public init(_ code: Code, _ message: String = "") {
    self.code = code
    self.message = message
  }

  public var description: String { message.isEmpty ? "\(code)" : message }
}

/// An error code of the Attribute Protocol (Core Vol 3 Part F 3.4.1.1), application and profile codes included.
public struct ATTErrorCode: Error, RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  public var rawValue: UInt8
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public static let invalidHandle = Self(rawValue: 0x01)
  public static let readNotPermitted = Self(rawValue: 0x02)
  public static let writeNotPermitted = Self(rawValue: 0x03)
  public static let invalidPDU = Self(rawValue: 0x04)
  public static let insufficientAuthentication = Self(rawValue: 0x05)
  public static let requestNotSupported = Self(rawValue: 0x06)
  public static let invalidOffset = Self(rawValue: 0x07)
  public static let insufficientAuthorization = Self(rawValue: 0x08)
  public static let prepareQueueFull = Self(rawValue: 0x09)
  public static let attributeNotFound = Self(rawValue: 0x0A)
  public static let attributeNotLong = Self(rawValue: 0x0B)
  public static let insufficientEncryptionKeySize = Self(rawValue: 0x0C)
  public static let invalidAttributeValueLength = Self(rawValue: 0x0D)
  public static let unlikelyError = Self(rawValue: 0x0E)
  public static let insufficientEncryption = Self(rawValue: 0x0F)
  public static let unsupportedGroupType = Self(rawValue: 0x10)
  public static let insufficientResources = Self(rawValue: 0x11)

  public var description: String { "ATT error 0x" + String(rawValue, radix: 16) }
}

/// Why a GATT request failed.
public enum GATTFailure: Error, Hashable, Sendable {
  /// The peer (or the local check of its rules) answered with an ATT error.
  case att(ATTErrorCode)
  /// The radio could not carry it out.
  case radio(RadioError)
}
