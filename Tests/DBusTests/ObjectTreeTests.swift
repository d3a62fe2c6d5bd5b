import Foundation
import Testing

@testable import DBus

@Suite("Exported objects, without a bus")
struct ObjectTreeTests {
  private static let interface = DBusInterface(
    "org.example.Lamp",
    methods: [
      DBusMethod("Toggle", in: [DBusArgument("how", .string)], out: [DBusArgument("", .boolean)]) { _ in }
    ],
    properties: [
      DBusProperty(
        "Level", .uint16, get: { () throws(DBusError) in .uint16(7) }, set: { _, _ throws(DBusError) in }),
      DBusProperty("Name", .string, changes: .constant, get: { () throws(DBusError) in .string("desk") }),
      DBusProperty(
        "Broken", .string,
        get: { () throws(DBusError) in throw DBusError(name: "org.example.No", message: "") }),
      DBusProperty("Wrong", .string, get: { () throws(DBusError) in .byte(1) }),
      DBusProperty("Secret", .string, changes: .invalidates, get: nil, set: { _, _ throws(DBusError) in }),
    ],
    signals: [DBusSignal("Blown", [DBusArgument("a<b&\"c\"", .string)])])

  private func tree() throws -> ObjectTree {
    var tree = ObjectTree()
    try tree.insert(
      ObjectTree.Object(interfaces: [], isManager: true, token: DBusExport.Token()), at: "/org/example")
    try tree.insert(
      ObjectTree.Object(interfaces: [Self.interface], isManager: false, token: DBusExport.Token()),
      at: "/org/example/lamp/1")
    return tree
  }

  private func call(
    _ path: ObjectPath, _ interface: String?, _ member: String, _ body: [DBusValue] = []
  ) throws -> DBusMessage {
    try .call(destination: ":1.1", path: path, interface: interface, member: member, body: body)
  }

  private func reply(
    _ path: ObjectPath, _ interface: String?, _ member: String, _ body: [DBusValue] = []
  ) throws -> [DBusValue] {
    let outcome = try tree().outcome(of: call(path, interface, member, body))
    guard case .reply(let values) = outcome else {
      Issue.record("\(outcome)")
      return []
    }
    return values
  }

  private static let lamp: ObjectPath = "/org/example/lamp/1"
  private static let set = [DBusValue.string("org.example.Lamp"), .string("Level")]

  @Test(
    "Errors by name",
    arguments: [
      ("/nowhere", "org.example.Lamp", "Toggle", [], DBusErrorName.unknownObject),
      ("/org/example/lam", nil, "Toggle", [], DBusErrorName.unknownObject),
      (lamp, "org.example.Other", "Toggle", [], DBusErrorName.unknownInterface),
      (lamp, "org.example.Lamp", "Explode", [], DBusErrorName.unknownMethod),
      (lamp, nil, "Explode", [], DBusErrorName.unknownMethod),
      (lamp, "org.example.Lamp", "Toggle", [.byte(1)], DBusErrorName.invalidArguments),
      (lamp, "org.example.Lamp", "Toggle", [], DBusErrorName.invalidArguments),
      (lamp, DBusWellKnown.properties, "Get", set + [.byte(1)], DBusErrorName.invalidArguments),
      (
        lamp, DBusWellKnown.properties, "Get", [.string("x.y"), .string("Level")],
        DBusErrorName.unknownInterface
      ),
      (lamp, DBusWellKnown.properties, "Get", [set[0], .string("No")], DBusErrorName.unknownProperty),
      (lamp, DBusWellKnown.properties, "Get", [set[0], .string("Broken")], "org.example.No"),
      (lamp, DBusWellKnown.properties, "Get", [set[0], .string("Wrong")], DBusErrorName.failed),
      (lamp, DBusWellKnown.properties, "Get", [set[0], .string("Secret")], DBusErrorName.accessDenied),
      (lamp, DBusWellKnown.properties, "Set", set + [.variant(.string("x"))], DBusErrorName.invalidArguments),
      (
        lamp, DBusWellKnown.properties, "Set", [set[0], .string("Name"), .variant(.string("x"))],
        DBusErrorName.propertyReadOnly
      ),
      (lamp, DBusWellKnown.objectManager, "GetManagedObjects", [], DBusErrorName.unknownInterface),
      ("/org", DBusWellKnown.properties, "GetAll", [.string("")], DBusErrorName.unknownInterface),
      (lamp, DBusWellKnown.peer, "Pong", [], DBusErrorName.unknownMethod),
    ] as [(ObjectPath, String?, String, [DBusValue], String)])
  func errors(
    _ path: ObjectPath, _ interface: String?, _ member: String, _ body: [DBusValue], _ name: String
  ) throws {
    let error = #expect(throws: DBusError.self) {
      try tree().outcome(of: call(path, interface, member, body))
    }
    #expect(error?.name == name)
  }

  @Test("A method is found with and without its interface", arguments: ["org.example.Lamp", nil])
  func method(_ interface: String?) throws {
    let outcome = try tree().outcome(of: call(Self.lamp, interface, "Toggle", [.string("slowly")]))
    guard case .invoke(let method) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(method.name == "Toggle")
  }

  @Test("Properties: one, all without those that have no value, and a write")
  func properties() throws {
    #expect(try reply(Self.lamp, DBusWellKnown.properties, "Get", Self.set) == [.variant(.uint16(7))])
    let all = DBusValue.options(["Level": .uint16(7), "Name": .string("desk")])
    #expect(try reply(Self.lamp, DBusWellKnown.properties, "GetAll", [Self.set[0]]) == [all])
    #expect(try reply(Self.lamp, nil, "GetAll", [.string("")]) == [all])
    let outcome = try tree().outcome(
      of: call(Self.lamp, DBusWellKnown.properties, "Set", Self.set + [.variant(.uint16(3))]))
    guard case .written("org.example.Lamp", "Level") = outcome else {
      Issue.record("\(outcome)")
      return
    }
  }

  @Test("An object manager tells of what is below it, not of itself")
  func managed() throws {
    let values = try reply("/org/example", DBusWellKnown.objectManager, "GetManagedObjects")
    guard case .dictionary(.objectPath, _, let entries)? = values.first else {
      Issue.record("\(values)")
      return
    }
    #expect(entries.map(\.key) == [.objectPath(Self.lamp)])
    #expect(values.first?.type.description == "a{oa{sa{sv}}}")
  }

  @Test("Introspection is XML that has everything, on the way as well")
  func introspection() throws {
    for (path, name) in [("/", "org"), ("/org", "example"), ("/org/example/lamp", "1")] {
      let values = try reply(ObjectPath(path), DBusWellKnown.introspectable, "Introspect")
      let text = try String(#require(values.first))
      #expect(text.contains("<node name=\"\(name)\"/>"))
      #expect(text.components(separatedBy: "<node name=").count == 2)
    }
    let values = try reply(Self.lamp, DBusWellKnown.introspectable, "Introspect")
    let text = try String(#require(values.first))
    for part in [
      "<interface name=\"org.example.Lamp\">", "<arg name=\"how\" type=\"s\" direction=\"in\"/>",
      "<arg type=\"b\" direction=\"out\"/>", "<property name=\"Level\" type=\"q\" access=\"readwrite\"/>",
      "<property name=\"Secret\" type=\"s\" access=\"write\">", "value=\"invalidates\"", "value=\"const\"",
      "<arg name=\"a&lt;b&amp;&quot;c&quot;\" type=\"s\"/>", "org.freedesktop.DBus.Properties",
    ] { #expect(text.contains(part), "\(part)") }
  }

  @Test(
    "Declarations that are refused",
    arguments: [
      DBusInterface("noDots"), DBusInterface(DBusWellKnown.properties),
      DBusInterface("a.b", methods: [DBusMethod("a.b") { _ in }]),
      DBusInterface("a.b", methods: [DBusMethod("M") { _ in }, DBusMethod("M") { _ in }]),
      DBusInterface("a.b", signals: [DBusSignal("S", [DBusArgument("", .structure([]))])]),
    ])
  func declarations(_ interface: DBusInterface) {
    #expect(throws: DBusError.self) { try interface.check() }
  }
}
