internal import CDBus

extension MessageHandle {
  /// Header fields of a received message, with an empty body; nil for types of messages that this version of D-Bus does not have.
  ///
  /// libdbus has validated everything in the message before it hands it over.
  func header() -> DBusMessage? {
    guard let kind = DBusMessage.Kind(code: unsafe dbus_message_get_type(pointer)) else { return nil }
    var message = DBusMessage(kind: kind, body: [], signature: .empty)
    message.destination = unsafe Self.text(dbus_message_get_destination(pointer))
    message.path = unsafe Self.text(dbus_message_get_path(pointer)).map(ObjectPath.init(valid:))
    message.interface = unsafe Self.text(dbus_message_get_interface(pointer))
    message.member = unsafe Self.text(dbus_message_get_member(pointer))
    message.errorName = unsafe Self.text(dbus_message_get_error_name(pointer))
    message.sender = unsafe Self.text(dbus_message_get_sender(pointer))
    message.serial = unsafe dbus_message_get_serial(pointer)
    let replySerial = unsafe dbus_message_get_reply_serial(pointer)
    message.replySerial = replySerial == 0 ? nil : replySerial
    message.expectsReply = unsafe kind == .methodCall && dbus_message_get_no_reply(pointer) == 0
    message.startsService = unsafe dbus_message_get_auto_start(pointer) != 0
    message.allowsInteraction = unsafe dbus_message_get_allow_interactive_authorization(pointer) != 0
    return message
  }

  /// Reads the body into a message; throws where a descriptor cannot be duplicated.
  func readBody(into message: inout DBusMessage) throws(DBusError) {
    let signature = try Self.signature(unsafe Self.text(dbus_message_get_signature(pointer)) ?? "")
    var iterator = unsafe CDBus.DBusMessageIter()
    guard unsafe dbus_message_iter_init(pointer, &iterator) != 0 else { return }
    message.body = try unsafe values(of: signature.types, at: &iterator)
    message.signature = signature
  }

  private static func text(_ characters: UnsafePointer<CChar>?) -> String? {
    unsafe characters.map { unsafe String(cString: $0) }
  }

  /// A signature that came from libdbus: one that this module does not take is the sender's doing.
  private static func signature(_ text: String) throws(DBusError) -> DBusSignature {
    do { return try DBusSignature(text) } catch { throw .unexpected(error.message) }
  }

  /// Values of a known number of types: a body, or fields of a structure.
  private func values(
    of types: [DBusType], at iterator: inout CDBus.DBusMessageIter
  ) throws(DBusError) -> [DBusValue] {
    var values: [DBusValue] = []
    values.reserveCapacity(types.count)
    for type in types {
      values.append(try unsafe value(of: type, at: &iterator))
      _ = unsafe dbus_message_iter_next(&iterator)
    }
    return values
  }

  /// Depth is bounded: libdbus refuses messages with more than 64 levels.
  private func value(
    of type: DBusType, at iterator: inout CDBus.DBusMessageIter
  ) throws(DBusError) -> DBusValue {
    switch type {
    case .byte: return unsafe .byte(number(0, &iterator))
    case .boolean: return unsafe .boolean(number(dbus_bool_t(0), &iterator) != 0)
    case .int16: return unsafe .int16(number(0, &iterator))
    case .uint16: return unsafe .uint16(number(0, &iterator))
    case .int32: return unsafe .int32(number(0, &iterator))
    case .uint32: return unsafe .uint32(number(0, &iterator))
    case .int64: return unsafe .int64(number(0, &iterator))
    case .uint64: return unsafe .uint64(number(0, &iterator))
    case .double: return unsafe .double(number(0, &iterator))
    case .string: return unsafe .string(text(&iterator))
    case .objectPath: return unsafe .objectPath(ObjectPath(valid: text(&iterator)))
    case .signature: return try unsafe .signature(Self.signature(text(&iterator)))
    case .descriptor:
      // libdbus has made a duplicate for the caller.
      let raw = unsafe number(Int32(-1), &iterator)
      guard raw >= 0 else {
        throw DBusError(
          kind: .system, name: DBusErrorName.failed, message: "no descriptor is left for a received one")
      }
      return .descriptor(UnixDescriptor(owning: raw))
    case .variant:
      var sub = unsafe Self.recurse(&iterator)
      let signature = try unsafe Self.signature(of: &sub)
      guard let inner = signature.types.first else { throw .unexpected("a variant without a value") }
      return .variant(try unsafe value(of: inner, at: &sub))
    case .structure(let types):
      var sub = unsafe Self.recurse(&iterator)
      return .structure(try unsafe values(of: types, at: &sub))
    case .array(of: .byte):
      return unsafe .bytes(bytes(&iterator))
    case .array(let element):
      var elements: [DBusValue] = []
      try unsafe forEachElement(&iterator) { (sub) throws(DBusError) in
        elements.append(try unsafe value(of: element, at: &sub))
      }
      return .array(of: element, elements)
    case .dictionary(let key, let value):
      var entries: [DBusEntry] = []
      try unsafe forEachElement(&iterator) { (sub) throws(DBusError) in
        var pair = unsafe Self.recurse(&sub)
        let both = try unsafe values(of: [key, value], at: &pair)
        entries.append(DBusEntry(key: both[0], value: both[1]))
      }
      return .dictionary(key: key, value: value, entries)
    }
  }

  private func number<Number: BitwiseCopyable>(_ initial: Number, _ iterator: inout CDBus.DBusMessageIter)
    -> Number
  {
    var number = initial
    unsafe dbus_message_iter_get_basic(&iterator, &number)
    return number
  }

  private func text(_ iterator: inout CDBus.DBusMessageIter) -> String {
    var characters: UnsafePointer<CChar>?
    unsafe dbus_message_iter_get_basic(&iterator, &characters)
    return unsafe Self.text(characters) ?? ""
  }

  private func bytes(_ iterator: inout CDBus.DBusMessageIter) -> [UInt8] {
    var sub = unsafe Self.recurse(&iterator)
    var start: UnsafePointer<UInt8>?
    var count: Int32 = 0
    unsafe dbus_message_iter_get_fixed_array(&sub, &start, &count)
    return unsafe Array(UnsafeBufferPointer(start: start, count: Int(count)))
  }

  private func forEachElement(
    _ iterator: inout CDBus.DBusMessageIter,
    _ body: (inout CDBus.DBusMessageIter) throws(DBusError) -> Void
  ) throws(DBusError) {
    var sub = unsafe Self.recurse(&iterator)
    while unsafe dbus_message_iter_get_arg_type(&sub) != 0 {
      try unsafe body(&sub)
      _ = unsafe dbus_message_iter_next(&sub)
    }
  }

  private static func recurse(_ iterator: inout CDBus.DBusMessageIter) -> CDBus.DBusMessageIter {
    var sub = unsafe CDBus.DBusMessageIter()
    unsafe dbus_message_iter_recurse(&iterator, &sub)
    return unsafe sub
  }

  private static func signature(of iterator: inout CDBus.DBusMessageIter) throws(DBusError) -> DBusSignature {
    guard let characters = unsafe dbus_message_iter_get_signature(&iterator) else { throw .outOfMemory }
    defer { unsafe dbus_free(characters) }
    return try signature(unsafe String(cString: characters))
  }
}
