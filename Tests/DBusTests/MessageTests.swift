import Foundation
import Testing

@testable import DBus

@Suite("Messages through libdbus")
struct MessageTests {
  /// Encodes and reads back, without a bus.
  private func throughLibrary(_ message: DBusMessage) throws -> DBusMessage {
    let handle = try MessageHandle.encoding(message)
    let header = handle.header()
    var result = try #require(header)
    try handle.readBody(into: &result)
    return result
  }

  private static let samples: [DBusValue] = [
    .byte(255), .boolean(true), .boolean(false), .int16(.min), .uint16(.max), .int32(.min), .uint32(.max),
    .int64(.min), .uint64(.max), .double(-0.1), .double(.infinity), .string(""), .string("a\u{10FFFF}ü"),
    .objectPath("/"), .objectPath("/a/b"), .signature(.empty), .bytes([]), .bytes([0, 1, 255]),
    .array(of: .string, []), .array(of: .boolean, [.boolean(true), .boolean(false)]),
    .array(of: .array(of: .byte), [.bytes([1]), .bytes([])]), .structure([.byte(1), .uint64(2)]),
    .dictionary(key: .string, value: .variant, []),
    .dictionary(
      key: .byte, value: .array(of: .byte), [DBusEntry(key: .byte(1), value: .bytes([2, 3]))]),
    .variant(.variant(.structure([.string("x")]))), .options(["a": .uint16(1), "b": .bytes([1])]),
  ]

  @Test("Every type comes back as it was", arguments: samples)
  func everyType(_ value: DBusValue) throws {
    let message = try DBusMessage.signal(
      path: "/a", interface: "a.b", member: "M", body: [value, .variant(value), .byte(1)])
    let result = try throughLibrary(message)
    #expect(result.body == message.body)
    #expect(result.signature == message.signature)
  }

  @Test("Random nested values come back as they were", arguments: 0..<200 as Range<UInt64>)
  func random(seed: UInt64) throws {
    var values = RandomValues(seed: seed)
    let body = values.body()
    let message: DBusMessage
    do { message = try .signal(path: "/a", interface: "a.b", member: "M", body: body) } catch {
      // Only the length of a signature is left to chance.
      #expect(error.name == DBusErrorName.invalidSignature)
      return
    }
    #expect(try throughLibrary(message).body == body)
  }

  @Test("An array of bytes is one case, however it was written")
  func bytes() throws {
    let message = try DBusMessage.signal(
      path: "/a", interface: "a.b", member: "M", body: [.array(of: .byte, [.byte(1), .byte(2)])])
    #expect(try throughLibrary(message).body == [.bytes([1, 2])])
  }

  @Test("Header fields")
  func header() throws {
    var call = try DBusMessage.call(destination: "org.x", path: "/p", interface: "a.b", member: "M")
    call.startsService = false
    call.allowsInteraction = true
    #expect(try throughLibrary(call) == call)
    var received = call
    received.sender = ":1.9"
    received.serial = 77
    let reply = try throughLibrary(.reply(to: received, body: [.byte(1)]))
    #expect(reply.kind == .methodReturn && reply.replySerial == 77 && reply.destination == ":1.9")
    let error = try throughLibrary(.error(to: received, DBusError(name: "bad name", message: "a\0b")))
    #expect(error.asError == DBusError(name: DBusErrorName.failed, message: "ab"))
  }

  private static func nested(_ depth: Int, _ wrap: (DBusValue) -> DBusValue) -> DBusValue {
    (0..<depth).reduce(DBusValue.boolean(true)) { value, _ in wrap(value) }
  }

  @Test(
    "What libdbus would abort at is an error before",
    arguments: [
      DBusValue.string("a\0b"), .structure([]), .array(of: .string, [.byte(1)]),
      .array(of: .structure([]), []), .dictionary(key: .variant, value: .byte, []),
      .dictionary(key: .string, value: .byte, [DBusEntry(key: .byte(1), value: .byte(1))]),
      .variant(.structure([])), .variant(.string("\0")),
      .array(of: .structure([.byte]), [.structure([.byte(1), .byte(2)])]),
      .array(of: .array(of: .string), [.array(of: .byte, [])]),
      nested(33) { .array(of: $0.type, [$0]) }, nested(33) { .structure([$0]) }, nested(65) { .variant($0) },
      nested(1000) { .variant($0) },
    ])
  func invalid(_ value: DBusValue) {
    let error = #expect(throws: DBusError.self) {
      try DBusMessage.signal(path: "/a", interface: "a.b", member: "M", body: [value])
    }
    #expect(error?.kind == .invalidArgument)
  }

  @Test(
    "The deepest nesting that is allowed",
    arguments: [
      nested(32) { .array(of: $0.type, [$0]) }, nested(32) { .structure([$0]) }, nested(64) { .variant($0) },
    ])
  func deepest(_ value: DBusValue) throws {
    let message = try DBusMessage.signal(path: "/a", interface: "a.b", member: "M", body: [value])
    #expect(try throughLibrary(message).body == [value])
  }

  @Test("An array of 64 MiB, not one octet more")
  func longArray() throws {
    let longest = [UInt8](repeating: 1, count: 1 << 26)
    let message = try DBusMessage.signal(
      path: "/a", interface: "a.b", member: "M", body: [.bytes(longest)])
    #expect(try throughLibrary(message).body == message.body)
    let error = #expect(throws: DBusError.self) {
      try DBusMessage.signal(path: "/a", interface: "a.b", member: "M", body: [.bytes(longest + [1])])
    }
    #expect(error?.name == DBusErrorName.limitsExceeded)
    #expect(throws: DBusError.self) {
      try DBusMessage.signal(
        path: "/a", interface: "a.b", member: "M", body: [.bytes(longest), .bytes(longest)])
    }
  }

  @Test("Octets are counted with their padding")
  func padding() throws {
    var check = BodyCheck()
    // y at 0; x at 8; length at 16, elements from 24 although there are none; s at 24 with 4 + 2 octets; g with 1 + 1 + 1.
    let body: [DBusValue] = [.byte(1), .int64(1), .array(of: .int64, []), .string("a")]
    #expect(try check.add(body).text == "yxaxs")
    #expect(check.octets == 30)
  }

  @Test("Reserved names are not sent")
  func reserved() {
    #expect(throws: DBusError.self) {
      try DBusMessage.signal(path: "/a", interface: "org.freedesktop.DBus.Local", member: "Disconnected")
    }
    #expect(throws: DBusError.self) {
      try DBusMessage.call(
        destination: nil, path: "/org/freedesktop/DBus/Local", interface: nil, member: "M")
    }
  }

  private typealias Options = [String: DBusVariant]

  @Test("Typed reading finds every difference")
  func typed() throws {
    let message = try DBusMessage.signal(
      path: "/a", interface: "a.b", member: "M",
      body: [.string("x"), .uint16(7), ["k": DBusVariant(containing: .bytes([1]))].dbusValue])
    let (text, number, options) = try message.read(String.self, UInt16.self, Options.self)
    #expect(text == "x" && number == 7 && options["k"]?.content == .bytes([1]))
    let errors = [
      #expect(throws: DBusError.self) { try message.read(String.self) },
      #expect(throws: DBusError.self) { try message.read(String.self, Int16.self, Options.self) },
      #expect(throws: DBusError.self) { try message.read(String.self, UInt16.self, [String: String].self) },
      #expect(throws: DBusError.self) { try message.read(String.self, UInt16.self, Options.self, Bool.self) },
      #expect(throws: DBusError.self) { try message.read() },
    ]
    #expect(errors.map { $0?.kind } == errors.map { _ in .unexpectedReply })
    #expect([UInt8]([1, 2]).dbusValue == .bytes([1, 2]))
    #expect(try [UInt8](DBusValue.bytes([1, 2])) == [1, 2])
    #expect(throws: DBusError.self) { try [String](DBusValue.bytes([1])) }
  }

  @Test("Structures are written and read field by field")
  func structures() throws {
    var writer = DBusWriter()
    writer.structure { fields in
      fields.append("a")
      fields.append(UInt32(1))
    }
    writer.append(.array(of: .structure([.byte]), [.structure([.byte(9)])]))
    var reader = DBusReader(writer.values)
    var fields = try reader.structure()
    #expect(try fields.next(String.self) == "a" && fields.next(UInt32.self) == 1)
    try fields.end()
    var elements = try reader.structures()
    #expect(try elements[0].next(UInt8.self) == 9)
    try reader.end()
    #expect(throws: DBusError.self) { try reader.structure() }
  }

  @Test(
    "Standard signals are read, and refused with other types",
    arguments: [
      (
        DBusWellKnown.properties, "PropertiesChanged",
        [.string("a.b"), .options(["P": .byte(1)]), ["Q"].dbusValue],
        .properties("/a", interface: "a.b", changed: ["P": .byte(1)], invalidated: ["Q"])
      ),
      (
        DBusWellKnown.objectManager, "InterfacesRemoved", [.objectPath("/x"), ["a.b"].dbusValue],
        .removed("/x", interfaces: ["a.b"])
      ),
      ("a.b", "InterfacesRemoved", [.objectPath("/x"), ["a.b"].dbusValue], nil),
    ] as [(String, String, [DBusValue], ObjectChange?)])
  func changes(
    _ interface: String, _ member: String, _ body: [DBusValue], _ expected: ObjectChange?
  ) throws {
    let message = try DBusMessage.signal(path: "/a", interface: interface, member: member, body: body)
    #expect(try ObjectChange(message) == expected)
    let wrong = try DBusMessage.signal(
      path: "/a", interface: interface, member: member, body: [.byte(1)] + body)
    if expected == nil {
      #expect(try ObjectChange(wrong) == nil)
    } else {
      let error = #expect(throws: DBusError.self) { try ObjectChange(wrong) }
      #expect(error?.kind == .unexpectedReply)
    }
  }
}
