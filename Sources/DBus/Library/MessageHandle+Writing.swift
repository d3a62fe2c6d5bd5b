internal import CDBus

extension MessageHandle {
  /// Encodes a message that was checked when it was made, so that what libdbus can refuse here is memory, or to duplicate a descriptor.
  static func encoding(_ message: DBusMessage) throws(DBusError) -> MessageHandle {
    guard let pointer = unsafe dbus_message_new(message.kind.code) else { throw .outOfMemory }
    let handle = unsafe MessageHandle(owning: pointer)
    try handle.writeHeader(of: message)
    var iterator = unsafe CDBus.DBusMessageIter()
    unsafe dbus_message_iter_init_append(pointer, &iterator)
    for value in message.body { try unsafe handle.append(value, to: &iterator) }
    return handle
  }

  private func writeHeader(of message: DBusMessage) throws(DBusError) {
    var done = unsafe dbus_message_set_destination(pointer, message.destination) != 0
    done = unsafe dbus_message_set_path(pointer, message.path?.text) != 0 && done
    done = unsafe dbus_message_set_interface(pointer, message.interface) != 0 && done
    done = unsafe dbus_message_set_member(pointer, message.member) != 0 && done
    done = unsafe dbus_message_set_error_name(pointer, message.errorName) != 0 && done
    // libdbus takes a serial of 0 for a mistake.
    if let serial = message.replySerial, serial != 0 {
      done = unsafe dbus_message_set_reply_serial(pointer, serial) != 0 && done
    }
    guard done else { throw .outOfMemory }
    unsafe dbus_message_set_no_reply(pointer, message.expectsReply ? 0 : 1)
    unsafe dbus_message_set_auto_start(pointer, message.startsService ? 1 : 0)
    unsafe dbus_message_set_allow_interactive_authorization(pointer, message.allowsInteraction ? 1 : 0)
  }

  private func append(
    _ value: DBusValue, to iterator: inout CDBus.DBusMessageIter
  ) throws(DBusError) {
    let code = Int32(value.type.code)
    switch value {
    case .byte(let number): try unsafe append(number, code, &iterator)
    case .boolean(let flag): try unsafe append(dbus_bool_t(flag ? 1 : 0), code, &iterator)
    case .int16(let number): try unsafe append(number, code, &iterator)
    case .uint16(let number): try unsafe append(number, code, &iterator)
    case .int32(let number): try unsafe append(number, code, &iterator)
    case .uint32(let number): try unsafe append(number, code, &iterator)
    case .int64(let number): try unsafe append(number, code, &iterator)
    case .uint64(let number): try unsafe append(number, code, &iterator)
    case .double(let number): try unsafe append(number, code, &iterator)
    case .string(let text): try unsafe append(text: text, code, &iterator)
    case .objectPath(let path): try unsafe append(text: path.text, code, &iterator)
    case .signature(let signature): try unsafe append(text: signature.text, code, &iterator)
    case .descriptor(let descriptor):
      let raw = descriptor.raw
      // It may have been given away since the message was made.
      guard raw >= 0 else { throw .invalid("the descriptor was given away") }
      try unsafe append(raw, code, &iterator)
    case .variant(let inner):
      try unsafe container(code, inner.type.description, &iterator) { (sub) throws(DBusError) in
        try unsafe append(inner, to: &sub)
      }
    case .bytes(let bytes):
      try unsafe container(code, "y", &iterator) { (sub) throws(DBusError) in
        try unsafe append(bytes: bytes, &sub)
      }
    case .array(let element, let values):
      try unsafe container(code, element.description, &iterator) { (sub) throws(DBusError) in
        for value in values { try unsafe append(value, to: &sub) }
      }
    case .structure(let fields):
      try unsafe container(TypeCode.structure, nil, &iterator) { (sub) throws(DBusError) in
        for field in fields { try unsafe append(field, to: &sub) }
      }
    case .dictionary(let key, let value, let entries):
      try unsafe container(code, "{\(key)\(value)}", &iterator) { (sub) throws(DBusError) in
        for entry in entries {
          try unsafe container(TypeCode.dictionaryEntry, nil, &sub) { (pair) throws(DBusError) in
            try unsafe append(entry.key, to: &pair)
            try unsafe append(entry.value, to: &pair)
          }
        }
      }
    }
  }

  private func append<Number: BitwiseCopyable>(
    _ number: Number, _ code: Int32, _ iterator: inout CDBus.DBusMessageIter
  ) throws(DBusError) {
    var number = number
    guard unsafe dbus_message_iter_append_basic(&iterator, code, &number) != 0 else { throw .outOfMemory }
  }

  private func append(
    text: String, _ code: Int32, _ iterator: inout CDBus.DBusMessageIter
  ) throws(DBusError) {
    let done = unsafe text.withCString { characters in
      var characters: UnsafePointer<CChar>? = unsafe characters
      return unsafe dbus_message_iter_append_basic(&iterator, code, &characters) != 0
    }
    guard done else { throw .outOfMemory }
  }

  private func append(
    bytes: [UInt8], _ iterator: inout CDBus.DBusMessageIter
  ) throws(DBusError) {
    guard !bytes.isEmpty else { return }
    let done = unsafe bytes.withUnsafeBufferPointer { buffer in
      var start = buffer.baseAddress
      return unsafe dbus_message_iter_append_fixed_array(
        &iterator, Int32(DBusType.byte.code), &start, Int32(buffer.count)) != 0
    }
    guard done else { throw .outOfMemory }
  }

  /// Opens a container, and closes it, or abandons it where its content fails.
  private func container(
    _ code: Int32, _ signature: String?, _ iterator: inout CDBus.DBusMessageIter,
    _ content: (inout CDBus.DBusMessageIter) throws(DBusError) -> Void
  ) throws(DBusError) {
    var sub = unsafe CDBus.DBusMessageIter()
    guard unsafe dbus_message_iter_open_container(&iterator, code, signature, &sub) != 0 else {
      throw .outOfMemory
    }
    do { try unsafe content(&sub) } catch {
      unsafe dbus_message_iter_abandon_container(&iterator, &sub)
      throw error
    }
    guard unsafe dbus_message_iter_close_container(&iterator, &sub) != 0 else { throw .outOfMemory }
  }
}

/// Codes that are no characters of signatures. Source: D-Bus Specification, "Summary of types".
enum TypeCode {
  static let structure = Int32(UInt8(ascii: "r"))
  static let dictionaryEntry = Int32(UInt8(ascii: "e"))
}
