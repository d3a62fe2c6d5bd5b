import PrivateBus
import Testing

@testable import DBus

@Suite("Peers that do not keep to their interface", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct HostilePeerTests {
  @Test(
    "Random arguments for every standard method, and random replies, end in errors",
    arguments: 0..<4 as Range<UInt64>)
  func randomBodies(seed: UInt64) async throws {
    let bus = try await PrivateBus()
    let (server, client) = (try await bus.connect(), try await bus.connect())
    let property = DBusProperty(
      "P", .uint16, get: { () throws(DBusError) in .uint16(1) }, set: { _, _ throws(DBusError) in })
    let export = try await server.export(
      [
        DBusInterface(
          "a.b", methods: [DBusMethod("M", in: [DBusArgument("", .uint16)]) { try? $0.reply() }],
          properties: [property])
      ],
      at: "/a", isObjectManager: true)
    var values = RandomValues(seed: seed)
    let targets: [(String?, String)] = [
      ("a.b", "M"), (nil, "M"), (DBusWellKnown.properties, "Get"), (DBusWellKnown.properties, "GetAll"),
      (DBusWellKnown.properties, "Set"), (DBusWellKnown.introspectable, "Introspect"), (nil, "Nothing"),
      (DBusWellKnown.objectManager, "GetManagedObjects"), (DBusWellKnown.peer, "Ping"),
      (DBusWellKnown.peer, "X"),
    ]
    for round in 0..<100 {
      let (interface, member) = targets[round % targets.count]
      guard
        let call = try? DBusMessage.call(
          destination: server.uniqueName, path: "/a", interface: interface, member: member,
          body: values.body())
      else { continue }
      do { _ = try await client.call(call) } catch { #expect((error as? DBusError)?.kind == .reply) }
    }
    let reply = try await client.call(
      .call(destination: server.uniqueName, path: "/a", interface: "a.b", member: "M", body: [.uint16(1)]))
    #expect(reply.body == [])
    withExtendedLifetime(export) {}
  }

  @Test("Replies of other types than expected are errors of the call alone")
  func wrongReplies() async throws {
    let bus = try await PrivateBus()
    let (peer, client) = (try await bus.connect(), try await bus.connect())
    // A peer that answers all calls for properties with what it likes.
    var values = RandomValues(seed: 99)
    for _ in 0..<40 {
      let body = values.body()
      let export = try await peer.export(
        [
          DBusInterface(
            "a.b",
            methods: [
              DBusMethod("Get", in: [], out: body.map { DBusArgument("", $0.type) }) { try? $0.reply(body) }
            ])
        ], at: "/a")
      let reply: DBusMessage
      do {
        reply = try await client.call(
          .call(destination: peer.uniqueName, path: "/a", interface: "a.b", member: "Get"))
      } catch {
        // A body whose signature is too long was never sent.
        continue
      }
      let error = #expect(throws: DBusError.self) {
        try reply.read(DBusDescriptor.self, [String: DBusVariant].self, [ObjectPath].self)
      }
      #expect(error?.kind == .unexpectedReply)
      export.remove()
    }
  }

  @Test("Forged replies, forged owners and stray messages change nothing")
  func forged() async throws {
    let bus = try await PrivateBus()
    let (hostile, victim) = (try await bus.connect(), try await bus.connect())
    let owners = Inbox<String?>()
    let subscription = try await victim.followOwner(of: "org.example.Name") { owners.put($0) }
    #expect(try await owners.next() == nil)
    try await hostile.send(
      .signal(
        path: DBusWellKnown.busPath, interface: DBusWellKnown.bus, member: "NameOwnerChanged",
        body: [.string("org.example.Name"), .string(""), .string(hostile.uniqueName)],
        destination: victim.uniqueName))
    var call = try DBusMessage.call(destination: nil, path: "/a", interface: nil, member: "M")
    call.sender = victim.uniqueName
    for serial in 1..<200 as Range<UInt32> {
      call.serial = serial
      try await hostile.send(.reply(to: call, body: [.string("forged")]))
      try await hostile.send(.error(to: call, DBusError(name: "a.b.Forged", message: "")))
    }
    #expect(try await victim.owner(of: "org.example.Name") == nil)
    #expect(try await hostile.requestName("org.example.Name") == .primaryOwner)
    #expect(try await owners.next() == hostile.uniqueName)
    withExtendedLifetime(subscription) {}
  }
}
