/// The one shape of every failure of the engine: what happened, with which value, what to do, and whether trying again can help.
public struct TransferError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What kind of failure it is. Programs decide by this and never by the text.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// A stable word, as it appears in JSON output.
    public var rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
  }

  /// Something that helps and that a program has a way to choose.
  public enum Remedy: Hashable, Sendable {
    /// Send the file as it is, whatever its format.
    case takeAsItIs
    /// Send what these addresses hold.
    case chooseAddresses(AddressRange)
    /// Use another adapter.
    case chooseRadio
    /// Leave the choice of the carrier open, or choose GATT.
    case chooseCarrier
  }

  /// The kind.
  public var code: Code
  /// What happened, where and with which value; one sentence without a full stop.
  public var message: String
  /// What the user can do; one sentence without a full stop.
  public var advice: String?
  /// What of it a program offers under a name of its own, such as an option of a command.
  public var remedy: Remedy?
  /// Whether the same transfer may succeed when tried again without any change.
  public var isRetriable: Bool

  /// Makes an error.
  public init(
    _ code: Code, _ message: String, advice: String? = nil, remedy: Remedy? = nil, isRetriable: Bool = false
  ) {
    self.code = code
    self.message = message
    self.advice = advice
    self.remedy = remedy
    self.isRetriable = isRetriable
  }

  public var description: String {
    advice.map { "\(message); \($0)" } ?? message
  }
}

extension TransferError.Code {
  // Input: what the user gave.

  /// A file is missing, unreadable, of the wrong kind, or has changed while it was read.
  public static let unusableFile = Self(rawValue: "unusable-file")
  /// A file was read and its contents break its format.
  public static let malformedFile = Self(rawValue: "malformed-file")
  /// A parameter is outside its range or does not go with another.
  public static let invalidArgument = Self(rawValue: "invalid-argument")

  // Local state.

  /// A manifest, journal or received part cannot be stored or read back.
  public static let storage = Self(rawValue: "storage")
  /// No space is left on the local disk.
  public static let diskFull = Self(rawValue: "disk-full")
  /// Another process works on the same transfer.
  public static let locked = Self(rawValue: "locked")
  /// A stored manifest or journal is damaged or of a version that this program does not know.
  public static let damagedState = Self(rawValue: "damaged-state")

  // Radio and peer.

  /// There is no usable adapter.
  public static let radioUnavailable = Self(rawValue: "radio-unavailable")
  /// More than one device is called as was said.
  public static let ambiguousDevice = Self(rawValue: "ambiguous-device")
  /// The device was not found within the time allowed.
  public static let deviceNotFound = Self(rawValue: "device-not-found")
  /// The link could not be made or was lost.
  public static let disconnected = Self(rawValue: "disconnected")
  /// Nothing was confirmed within the time allowed.
  public static let timedOut = Self(rawValue: "timed-out")
  /// The device does not speak a protocol that this program knows, or not in a version that both know.
  public static let unsupportedDevice = Self(rawValue: "unsupported-device")
  /// The device has refused in words.
  public static let refused = Self(rawValue: "refused")
  /// The device's storage is full or has failed.
  public static let deviceStorage = Self(rawValue: "device-storage")
  /// The device has broken the protocol.
  public static let protocolViolation = Self(rawValue: "protocol-violation")

  // Outcome.

  /// What the device holds is not what was sent.
  public static let verificationFailed = Self(rawValue: "verification-failed")
  /// The user or the program has ended it; it can be resumed.
  public static let cancelled = Self(rawValue: "cancelled")
}
