import CDBus
import Testing

@testable import DBus

@Suite("Names and paths")
struct NameTests {
  @Test(
    "Valid names",
    arguments: [
      (DBusName.Kind.bus, ":1.42"), (.bus, "org.bluez"), (.bus, "a-b.c_d"), (.bus, ":1.a-9"),
      (.interface, "org.bluez.GattCharacteristic1"), (.member, "Get_All9"), (.member, "_x"),
      (.error, "org.example.Error.No"), (.interface, "a." + String(repeating: "b", count: 253)),
    ])
  func valid(_ kind: DBusName.Kind, _ name: String) { #expect(DBusName.isValid(name, as: kind)) }

  @Test(
    "Names that are refused",
    arguments: [
      (DBusName.Kind.bus, ""), (.bus, "org"), (.bus, ":1"), (.bus, "org..bluez"), (.bus, ".org.b"),
      (.bus, "org.bluez."), (.bus, "org.9x"), (.bus, "org.blüez"), (.bus, "a.b\0"),
      (.interface, "org"), (.interface, "org.a-b"), (.interface, "org.1a"),
      (.interface, "a." + String(repeating: "b", count: 254)),
      (.member, ""), (.member, "a.b"), (.member, "9a"), (.member, "a b"), (.error, "Failed"),
      (.member, String(repeating: "m", count: 256)),
    ])
  func refused(_ kind: DBusName.Kind, _ name: String) {
    #expect(!DBusName.isValid(name, as: kind))
    let error = #expect(throws: DBusError.self) { try DBusName.check(name, as: kind) }
    #expect(error?.kind == .invalidArgument)
  }

  @Test(
    "Paths",
    arguments: [
      ("/", true), ("/a", true), ("/org/bluez/hci0/dev_00_11", true), ("/9/_", true), ("", false),
      ("a", false), ("/a/", false), ("//", false), ("/a//b", false), ("/a-b", false), ("/ä", false),
      ("/a\0", false),
    ])
  func paths(_ text: String, _ isValid: Bool) {
    #expect(ObjectPath.isValid(text) == isValid)
    #expect(((try? ObjectPath(text)) != nil) == isValid)
  }

  @Test("Descent of paths")
  func descent() throws {
    let path: ObjectPath = "/org/bluez"
    #expect(try path.appending("hci0").text == "/org/bluez/hci0")
    #expect(try ObjectPath.root.appending("a").text == "/a")
    #expect(throws: DBusError.self) { try path.appending("a/b/") }
    #expect(throws: DBusError.self) { try path.appending("") }
    #expect(ObjectPath("/org/bluez/hci0").isWithin(path))
    #expect(path.isWithin(path) && path.isWithin(.root))
    #expect(!ObjectPath("/org/bluezx").isWithin(path))
  }

  @Test("Random text is taken exactly where libdbus takes it", arguments: 0..<8 as Range<UInt64>)
  func likeLibrary(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let alphabet = Array("abZ_09.:-/ äy(){}vais")
    for _ in 0..<2000 {
      let count = Int.random(in: 0..<10, using: &generator)
      let text = String((0..<count).map { _ in alphabet.randomElement(using: &generator) ?? "a" })
      let library = unsafe [
        dbus_validate_interface(text, nil), dbus_validate_member(text, nil),
        dbus_validate_error_name(text, nil),
        dbus_validate_path(text, nil),
      ].map { $0 != 0 }
      let ours =
        [DBusName.Kind.interface, .member, .error].map { DBusName.isValid(text, as: $0) }
        + [ObjectPath.isValid(text)]
      #expect(ours == library, "\(text)")
      // Of unique names libdbus wants less than the specification: they may have one element, or none.
      let bus = unsafe dbus_validate_bus_name(text, nil) != 0
      #expect(
        DBusName.isUnique(text)
          ? bus || !DBusName.isValid(text, as: .bus) : DBusName.isValid(text, as: .bus) == bus)
    }
  }
}
