import ChildProcess
import Foundation
import Locking
import PrivateBus
import Testing

@testable import DBus

@Suite("Exported objects on a bus", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct ExportTests {
  /// A lamp whose level is kept here.
  private final class Lamp: Sendable {
    let level = PosixMutex<UInt16>(7)
    static let blown = DBusSignal("Blown", [DBusArgument("why", .string)])

    var interface: DBusInterface {
      DBusInterface(
        "org.example.Lamp",
        methods: [
          DBusMethod(
            "Add", in: [DBusArgument("a", .int32), DBusArgument("b", .int32)],
            out: [DBusArgument("sum", .int32)]
          ) { invocation in
            do throws(DBusError) {
              let (a, b) = try invocation.message.read(Int32.self, Int32.self)
              try invocation.reply([.int32(a &+ b)])
            } catch { invocation.fail(error) }
          }
        ],
        properties: [
          DBusProperty(
            "Level", .uint16, get: { [self] () throws(DBusError) in .uint16(level.withLock { $0 }) },
            set: { [self] value, _ throws(DBusError) in
              let new = try UInt16(value)
              guard new <= 100 else { throw DBusError(name: "org.example.TooBright", message: "\(new)") }
              level.withLock { $0 = new }
            }),
          DBusProperty(
            "Serial", .string, changes: .constant, get: { () throws(DBusError) in .string("x-1") }),
          DBusProperty(
            "History", .array(of: .string), changes: .invalidates,
            get: { () throws(DBusError) in ["a"].dbusValue }),
        ],
        signals: [Self.blown])
    }
  }

  @Test("Called by another connection: methods, properties, changes, signals")
  func called() async throws {
    let bus = try await PrivateBus()
    let (server, client) = (try await bus.connect(), try await bus.connect())
    let lamp = Lamp()
    let export = try await server.export([lamp.interface], at: "/lamp")
    let name = server.uniqueName
    let signals = Inbox<DBusMessage>()
    let subscription = try await client.subscribe(to: MatchRule(sender: name, path: "/lamp")) {
      signals.put($0)
    }
    let sum = try await client.call(
      .call(
        destination: name, path: "/lamp", interface: "org.example.Lamp", member: "Add",
        body: [.int32(2), .int32(3)]))
    #expect(sum.body == [.int32(5)])
    #expect(
      try await client.property("Level", of: "org.example.Lamp", at: "/lamp", destination: name) == .uint16(7)
    )
    try await client.setProperty(
      "Level", of: "org.example.Lamp", at: "/lamp", destination: name, to: .uint16(9))
    let changed = try await signals.next()
    #expect(changed.member == "PropertiesChanged")
    #expect(
      changed.body == [.string("org.example.Lamp"), .options(["Level": .uint16(9)]), [String]().dbusValue])
    export.propertiesChanged(["History", "Serial"], of: "org.example.Lamp")
    #expect(
      try await signals.next().body == [.string("org.example.Lamp"), .options([:]), ["History"].dbusValue])
    let refused = await failure {
      try await client.setProperty(
        "Level", of: "org.example.Lamp", at: "/lamp", destination: name, to: .uint16(101))
    }
    #expect(refused?.name == "org.example.TooBright")
    let all = try await client.properties(of: "org.example.Lamp", at: "/lamp", destination: name)
    #expect(all == ["Level": .uint16(9), "Serial": .string("x-1"), "History": ["a"].dbusValue])
    try export.emit(Lamp.blown, of: "org.example.Lamp", [.string("age")])
    #expect(try await signals.next().body == [.string("age")])
    #expect(throws: DBusError.self) { try export.emit(Lamp.blown, of: "org.example.Lamp", [.byte(1)]) }
    withExtendedLifetime(subscription) {}
  }

  @Test("Every peer answers for itself")
  func peer() async throws {
    let bus = try await PrivateBus()
    let (server, client) = (try await bus.connect(), try await bus.connect())
    let ping = try await client.call(
      .call(destination: server.uniqueName, path: "/any", interface: DBusWellKnown.peer, member: "Ping"))
    #expect(ping.body == [])
    do {
      let reply = try await client.call(
        .call(
          destination: server.uniqueName, path: "/", interface: DBusWellKnown.peer, member: "GetMachineId"))
      #expect(try reply.read(String.self).utf8.count == 32)
    } catch let error as DBusError {
      // Machines without an identifier are allowed: they say so.
      #expect(error.kind == .reply)
    }
  }

  @Test("An object manager tells what comes and goes, and the path can be used again")
  func manager() async throws {
    let bus = try await PrivateBus()
    let (server, client) = (try await bus.connect(), try await bus.connect())
    let signals = Inbox<DBusMessage>()
    let subscription = try await client.subscribe(to: MatchRule(interface: DBusWellKnown.objectManager)) {
      signals.put($0)
    }
    let root = try await server.export([], at: "/app", isObjectManager: true)
    let lamp = Lamp()
    var export: DBusExport? = try await server.export([lamp.interface], at: "/app/lamp")
    let added = try await signals.next()
    #expect(added.member == "InterfacesAdded" && added.path == "/app")
    #expect(
      try ObjectChange(added)
        == .added(
          "/app/lamp",
          [
            "org.example.Lamp": [
              "Level": .uint16(7), "Serial": .string("x-1"), "History": ["a"].dbusValue,
            ]
          ]))
    let extra = DBusInterface("org.example.Extra")
    try await export?.add(extra)
    #expect(try await signals.next().member == "InterfacesAdded")
    await #expect(throws: DBusError.self) { try await export?.add(extra) }
    let objects = try await client.managedObjects(at: "/app", destination: server.uniqueName)
    #expect(objects.keys.sorted() == ["/app/lamp"])
    #expect(objects["/app/lamp"]?.keys.sorted() == ["org.example.Extra", "org.example.Lamp"])
    export?.removeInterface("org.example.Extra")
    #expect(try await signals.next().body == [.objectPath("/app/lamp"), ["org.example.Extra"].dbusValue])
    let taken = await failure { try await server.export([], at: "/app/lamp") }
    #expect(taken?.name == DBusErrorName.objectPathInUse)
    let old = export
    old?.remove()
    #expect(try await signals.next().body == [.objectPath("/app/lamp"), ["org.example.Lamp"].dbusValue])
    export = try await server.export([extra], at: "/app/lamp")
    #expect(try await signals.next().member == "InterfacesAdded")
    // The handle of an export that is gone has no power over the next one.
    old?.remove()
    let reply = try await client.call(
      .call(
        destination: server.uniqueName, path: "/app/lamp", interface: DBusWellKnown.introspectable,
        member: "Introspect"))
    #expect(try reply.read(String.self).contains("org.example.Extra"))
    export = nil
    #expect(try await signals.next().member == "InterfacesRemoved")
    let gone = await failure {
      try await client.call(
        .call(destination: server.uniqueName, path: "/app/lamp", interface: "org.example.Extra", member: "M"))
    }
    #expect(gone?.name == DBusErrorName.unknownObject)
    withExtendedLifetime((subscription, root)) {}
  }

  private static func installed(_ path: String) -> ConditionTrait {
    .enabled(if: FileManager.default.isExecutableFile(atPath: path), "\(path) is not installed")
  }

  private func run(_ path: String, _ arguments: [String]) async throws -> (
    lines: [String], ending: ChildProcess.Ending?
  ) {
    let process = try ChildProcess(path, arguments)
    let lines = await process.allLines()
    return (lines, await process.ending())
  }

  @Test("dbus-send calls a method, reads and writes a property", installed("/usr/bin/dbus-send"))
  func dbusSend() async throws {
    let bus = try await PrivateBus()
    let server = try await bus.connect()
    let lamp = Lamp()
    let export = try await server.export([lamp.interface], at: "/lamp")
    _ = try await server.requestName("org.example.Lamp")
    func send(_ arguments: String...) async throws -> [String] {
      try await run(
        "/usr/bin/dbus-send",
        ["--bus=\(bus.addressText)", "--print-reply=literal", "--dest=org.example.Lamp", "/lamp"] + arguments
      ).lines.map { $0.trimmingCharacters(in: .whitespaces) }
    }
    #expect(try await send("org.example.Lamp.Add", "int32:40", "int32:2") == ["int32 42"])
    let property = ["string:org.example.Lamp", "string:Level"]
    _ = try await send("org.freedesktop.DBus.Properties.Set", property[0], property[1], "variant:uint16:11")
    #expect(lamp.level.withLock { $0 } == 11)
    #expect(
      try await send("org.freedesktop.DBus.Properties.Get", property[0], property[1]).joined()
        .contains("uint16 11"))
    withExtendedLifetime(export) {}
  }

  @Test("busctl understands what introspection says", installed("/usr/bin/busctl"))
  func busctl() async throws {
    let bus = try await PrivateBus()
    let server = try await bus.connect()
    let lamp = Lamp()
    let export = try await server.export([lamp.interface], at: "/org/example/lamp")
    _ = try await server.requestName("org.example.Lamp")
    let common = ["--address=\(bus.addressText)", "--no-pager"]
    let tree = try await run("/usr/bin/busctl", common + ["--list", "tree", "org.example.Lamp"])
    #expect(tree.ending == .exit(0))
    #expect(tree.lines.contains("/org/example/lamp"))
    let shown = try await run(
      "/usr/bin/busctl", common + ["introspect", "org.example.Lamp", "/org/example/lamp"])
    #expect(shown.ending == .exit(0))
    let text = shown.lines.joined(separator: "\n")
    for part in [".Add", ".Level", ".Blown", "writable", "org.freedesktop.DBus.Properties"] {
      #expect(text.contains(part), "\(part)")
    }
    let called = try await run(
      "/usr/bin/busctl",
      common + ["call", "org.example.Lamp", "/org/example/lamp", "org.example.Lamp", "Add", "ii", "1", "2"])
    #expect(called.lines == ["i 3"])
    withExtendedLifetime(export) {}
  }
}
