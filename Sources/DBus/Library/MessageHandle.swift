internal import CDBus

/// Owns one reference to a message of libdbus, from `dbus_message_new` or `dbus_connection_pop_message`.
///
/// Strings and iterators of a message point into it: they never leave the calls in which the handle is borrowed.
@safe struct MessageHandle: ~Copyable {
  let pointer: OpaquePointer

  /// Takes over the caller's reference.
  init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  deinit { unsafe dbus_message_unref(pointer) }
}

extension DBusMessage.Kind {
  /// Source: D-Bus Specification, "Message Format", the table of types.
  var code: Int32 {
    switch self {
    case .methodCall: 1
    case .methodReturn: 2
    case .error: 3
    case .signal: 4
    }
  }

  init?(code: Int32) {
    switch code {
    case 1: self = .methodCall
    case 2: self = .methodReturn
    case 3: self = .error
    case 4: self = .signal
    default: return nil
    }
  }
}
