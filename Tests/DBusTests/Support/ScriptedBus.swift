import CDBus
import Foundation
import Testing

@testable import DBus

/// Authenticates a client as a bus does, then sends fixed bytes and closes.
///
/// Source of the dialogue: D-Bus Specification, "Authentication Protocol".
final class ScriptedBus: Sendable {
  private let listener: SocketListener
  var address: DBusAddress { .address("unix:path=\(listener.path)") }

  init(sending bytes: [UInt8]) throws {
    listener = try SocketListener { peer in
      while let line = Self.line(peer) {
        switch line.split(separator: " ").first {
        case "AUTH": Self.write("OK 0123456789abcdef0123456789abcdef\r\n", peer)
        case "NEGOTIATE_UNIX_FD": Self.write("AGREE_UNIX_FD\r\n", peer)
        case "BEGIN":
          _ = unsafe send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL))
          return
        default: Self.write("ERROR\r\n", peer)
        }
      }
    }
  }

  private static func write(_ text: String, _ peer: Int32) {
    let bytes = Array(text.utf8)
    _ = unsafe send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// A line without its end, or nil where the client has gone. The NUL that comes first belongs to no line.
  private static func line(_ peer: Int32) -> String? {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while unsafe read(peer, &byte, 1) == 1 {
      if byte == 0x0A { return String(decoding: bytes, as: UTF8.self) }
      if byte != 0, byte != 0x0D { bytes.append(byte) }
    }
    return nil
  }

  /// A message as it is on the wire.
  static func wire(_ message: DBusMessage, serial: UInt32) throws -> [UInt8] {
    let handle = try MessageHandle.encoding(message)
    unsafe dbus_message_set_serial(handle.pointer, serial)
    var start: UnsafeMutablePointer<CChar>?
    var count: Int32 = 0
    let done = unsafe dbus_message_marshal(handle.pointer, &start, &count)
    try #require(done != 0)
    defer { unsafe dbus_free(start) }
    return unsafe UnsafeBufferPointer(start: start, count: Int(count)).map { UInt8(bitPattern: $0) }
  }
}
