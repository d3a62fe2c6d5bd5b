/// A message as a value: header fields and a body. Source: D-Bus Specification, "Message Protocol".
///
/// Every message was checked when it was made, so it can be sent as it is.
public struct DBusMessage: Hashable, Sendable {
  public enum Kind: Hashable, Sendable {
    case methodCall, methodReturn, error, signal
  }

  public let kind: Kind
  public internal(set) var destination: String?
  public internal(set) var path: ObjectPath?
  public internal(set) var interface: String?
  public internal(set) var member: String?
  public internal(set) var errorName: String?
  public internal(set) var body: [DBusValue]
  /// The unique name of who sent it, filled in by the bus; nil in messages that were not received.
  public internal(set) var sender: String?
  /// The number of a received message; 0 in others.
  public internal(set) var serial: UInt32 = 0
  /// Of a return or an error, the serial of its call.
  public internal(set) var replySerial: UInt32?
  /// Whether a call wants an answer.
  public internal(set) var expectsReply = false
  /// Whether the bus may start a program that owns the destination.
  public var startsService = true
  /// Whether the peer may ask a person for permission, and take the time that this needs.
  public var allowsInteraction = false
  /// Types of the body.
  public internal(set) var signature: DBusSignature

  init(kind: Kind, body: [DBusValue], signature: DBusSignature) {
    self.kind = kind
    self.body = body
    self.signature = signature
  }

  /// Checks the body; throws with kind ``DBusError/Kind/invalidArgument``.
  private init(kind: Kind, body: [DBusValue], header: Int) throws(DBusError) {
    var check = BodyCheck()
    let signature = try check.add(body)
    // Names, serials, padding and codes of the header fit into 2 KiB; only a path has no limit.
    guard header + 2048 + check.octets <= BodyCheck.maximumMessage else {
      throw .invalid(
        "a message of more than \(BodyCheck.maximumMessage) octets", name: DBusErrorName.limitsExceeded)
    }
    guard check.descriptors <= BodyCheck.maximumDescriptors else {
      throw .invalid(
        "more than \(BodyCheck.maximumDescriptors) descriptors", name: DBusErrorName.limitsExceeded)
    }
    self.init(kind: kind, body: body, signature: signature)
  }

  /// A call; throws with kind ``DBusError/Kind/invalidArgument`` where a name or a value is not allowed.
  public static func call(
    destination: String?, path: ObjectPath, interface: String?, member: String, body: [DBusValue] = []
  ) throws(DBusError) -> DBusMessage {
    if let destination { try DBusName.check(destination, as: .bus) }
    if let interface { try DBusName.check(interface, as: .interface) }
    try DBusName.check(member, as: .member)
    try checkReserved(path, interface)
    var message = try DBusMessage(kind: .methodCall, body: body, header: path.text.utf8.count)
    message.destination = destination
    message.path = path
    message.interface = interface
    message.member = member
    message.expectsReply = true
    return message
  }

  /// A signal to all, or to one destination; throws as ``call(destination:path:interface:member:body:)``.
  public static func signal(
    path: ObjectPath, interface: String, member: String, body: [DBusValue] = [], destination: String? = nil
  ) throws(DBusError) -> DBusMessage {
    if let destination { try DBusName.check(destination, as: .bus) }
    try DBusName.check(interface, as: .interface)
    try DBusName.check(member, as: .member)
    try checkReserved(path, interface)
    var message = try DBusMessage(kind: .signal, body: body, header: path.text.utf8.count)
    message.destination = destination
    message.path = path
    message.interface = interface
    message.member = member
    return message
  }

  /// The answer to a received call.
  static func reply(to call: DBusMessage, body: [DBusValue]) throws(DBusError) -> DBusMessage {
    var message = try DBusMessage(kind: .methodReturn, body: body, header: 0)
    message.destination = call.sender
    message.replySerial = call.serial
    return message
  }

  /// The error that answers a received call; what is not allowed in an error's name or text is replaced.
  static func error(to call: DBusMessage, _ error: DBusError) -> DBusMessage {
    // An answer has to go out whatever the error holds.
    let text = String(
      String.UnicodeScalarView(error.message.unicodeScalars.prefix(4096).filter { $0 != "\0" }))
    var message = DBusMessage(
      kind: .error, body: text.isEmpty ? [] : [.string(text)],
      signature: text.isEmpty ? .empty : .oneString)
    message.errorName = DBusName.isValid(error.name, as: .error) ? error.name : DBusErrorName.failed
    message.destination = call.sender
    message.replySerial = call.serial
    return message
  }

  /// Names by which libdbus tells its own program of the end of a connection.
  private static func checkReserved(_ path: ObjectPath, _ interface: String?) throws(DBusError) {
    guard path.text != DBusWellKnown.localPath, interface != DBusWellKnown.local else {
      throw .invalid("the interface \(DBusWellKnown.local) and its path are reserved")
    }
  }

  /// Reads the whole body as the given types; throws with kind ``DBusError/Kind/unexpectedReply`` at any difference.
  public func read<each Value: DBusConvertible>(
    _ types: repeat (each Value).Type
  ) throws(DBusError) -> (repeat each Value) {
    var reader = DBusReader(body)
    let result = (repeat try reader.next((each Value).self))
    try reader.end()
    return result
  }

  /// The error that a message of kind ``Kind/error`` stands for.
  var asError: DBusError {
    let text: String = if case .string(let text)? = body.first { text } else { "" }
    return DBusError(name: errorName ?? DBusErrorName.failed, message: text)
  }
}

extension DBusSignature {
  static let oneString = (try? DBusSignature("s")) ?? .empty
}
