/// What went wrong on the bus, at a peer, or before anything was sent.
///
/// Decide by ``kind`` and, for replies, by ``name``. Source: D-Bus Specification, "Message Types", "Errors".
public struct DBusError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Who says so.
  public enum Kind: Hashable, Sendable {
    /// A peer or the bus answered with an error; ``DBusError/name`` is its word.
    case reply
    /// The connection has ended, so nothing else will come.
    case disconnected
    /// No answer within the time limit of the call. The peer may still do what was asked.
    case timedOut
    /// What was to be sent is not valid on D-Bus; nothing was sent.
    case invalidArgument
    /// The caller has cancelled it; of `async` calls this is a `CancellationError`.
    case cancelled
    /// A peer sent other types or values than its interface says.
    case unexpectedReply
    /// The system refused: a socket, a descriptor, memory.
    case system
  }

  public let kind: Kind

  /// The error's name, such as `org.freedesktop.DBus.Error.NoReply`.
  public let name: String

  /// Words for people, possibly empty. Of a peer's choice where the kind is ``Kind/reply``.
  public let message: String

  public init(kind: Kind, name: String, message: String) {
    self.kind = kind
    self.name = name
    self.message = message
  }

  /// An error to answer a call with; an invalid name becomes ``DBusErrorName/failed`` when it is sent.
  public init(name: String, message: String) { self.init(kind: .reply, name: name, message: message) }

  public var description: String { message.isEmpty ? name : "\(name): \(message)" }

  static func invalid(_ message: String, name: String = DBusErrorName.invalidArguments) -> DBusError {
    DBusError(kind: .invalidArgument, name: name, message: message)
  }

  static func unexpected(_ message: String) -> DBusError {
    DBusError(kind: .unexpectedReply, name: DBusErrorName.invalidSignature, message: message)
  }

  static func disconnected(_ message: String = "the connection to the bus has ended") -> DBusError {
    DBusError(kind: .disconnected, name: DBusErrorName.disconnected, message: message)
  }

  static let outOfMemory = DBusError(
    kind: .system, name: DBusErrorName.noMemory, message: "libdbus could not allocate memory")
}

/// Names of errors that buses and libraries share. Source: D-Bus Specification and dbus-protocol.h of the reference implementation.
public enum DBusErrorName {
  public static let accessDenied = "org.freedesktop.DBus.Error.AccessDenied"
  public static let badAddress = "org.freedesktop.DBus.Error.BadAddress"
  public static let disconnected = "org.freedesktop.DBus.Error.Disconnected"
  public static let failed = "org.freedesktop.DBus.Error.Failed"
  public static let invalidArguments = "org.freedesktop.DBus.Error.InvalidArgs"
  public static let invalidSignature = "org.freedesktop.DBus.Error.InvalidSignature"
  public static let limitsExceeded = "org.freedesktop.DBus.Error.LimitsExceeded"
  public static let matchRuleInvalid = "org.freedesktop.DBus.Error.MatchRuleInvalid"
  public static let nameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
  public static let noMemory = "org.freedesktop.DBus.Error.NoMemory"
  public static let noReply = "org.freedesktop.DBus.Error.NoReply"
  public static let noServer = "org.freedesktop.DBus.Error.NoServer"
  public static let notSupported = "org.freedesktop.DBus.Error.NotSupported"
  public static let objectPathInUse = "org.freedesktop.DBus.Error.ObjectPathInUse"
  public static let propertyReadOnly = "org.freedesktop.DBus.Error.PropertyReadOnly"
  public static let serviceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
  public static let unknownInterface = "org.freedesktop.DBus.Error.UnknownInterface"
  public static let unknownMethod = "org.freedesktop.DBus.Error.UnknownMethod"
  public static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
  public static let unknownProperty = "org.freedesktop.DBus.Error.UnknownProperty"
}
