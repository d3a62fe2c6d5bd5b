import Testing

@testable import DBus

@Suite("Buses that do not keep to the specification", .timeLimit(.minutes(30)))
struct HostileBusTests {
  /// The first call of a connection has serial 1.
  private static func answer(_ body: [DBusValue]) throws -> [UInt8] {
    var hello = DBusMessage(kind: .methodCall, body: [], signature: .empty)
    hello.serial = 1
    return try ScriptedBus.wire(.reply(to: hello, body: body), serial: 1)
  }

  @Test("A bus that keeps to it is believed: the others fail for their reasons")
  func control() async throws {
    let bus = try ScriptedBus(sending: Self.answer([.string(":1.7")]))
    let connection = try await DBusConnection.open(bus.address)
    #expect(connection.uniqueName == ":1.7")
    let ends = Inbox<DBusError>()
    connection.whenEnded { ends.put($0) }
    #expect(try await ends.next().kind == .disconnected)
  }

  @Test(
    "A greeting that is no unique name",
    arguments: [
      [], [DBusValue.uint32(1)], [.string("org.example")], [.string("")], [.string(":1.7"), .string("x")],
      [.variant(.string(":1.7"))],
    ])
  func greetings(_ body: [DBusValue]) async throws {
    let bus = try ScriptedBus(sending: Self.answer(body))
    let error = await failure { try await DBusConnection.open(bus.address) }
    #expect(error?.kind == .unexpectedReply)
  }

  @Test("An error instead of a greeting has its name")
  func refusal() async throws {
    var hello = DBusMessage(kind: .methodCall, body: [], signature: .empty)
    hello.serial = 1
    let bytes = try ScriptedBus.wire(.error(to: hello, DBusError(name: "a.b.Full", message: "no")), serial: 1)
    let bus = try ScriptedBus(sending: bytes)
    let error = await failure { try await DBusConnection.open(bus.address) }
    #expect(error == DBusError(name: "a.b.Full", message: "no"))
  }

  @Test(
    "Messages with wrong octets, cut off, or doubled end in an error or a connection",
    arguments: 0..<8 as Range<UInt64>)
  func mutations(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    var values = RandomValues(seed: seed)
    let signal = try ScriptedBus.wire(
      .signal(
        path: "/a", interface: "a.b", member: "S", body: [values.value(of: values.type(depth: 3), depth: 3)]),
      serial: 2)
    let valid = try Self.answer([.string(":1.7")])
    for _ in 0..<40 {
      var bytes = Bool.random(using: &generator) ? valid + signal : signal + valid
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        bytes[Int.random(in: bytes.indices, using: &generator)] = .random(
          in: .min ... .max, using: &generator)
      }
      if Bool.random(using: &generator) { bytes.removeLast(.random(in: 0..<bytes.count, using: &generator)) }
      let bus = try ScriptedBus(sending: bytes)
      do {
        let connection = try await DBusConnection.open(bus.address)
        #expect(DBusName.isUnique(connection.uniqueName))
        let ends = Inbox<DBusError>()
        connection.whenEnded { ends.put($0) }
        #expect(try await ends.next().kind == .disconnected)
      } catch { #expect(error is DBusError) }
    }
  }
}
