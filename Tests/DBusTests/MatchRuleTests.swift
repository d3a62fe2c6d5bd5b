import Testing

@testable import DBus

@Suite("Match rules")
struct MatchRuleTests {
  @Test("Text, with apostrophes and commas escaped")
  func text() {
    let rule = MatchRule(
      sender: "org.bluez", path: "/a", interface: "org.example.I", member: "M",
      arguments: [10: .path("/x/"), 0: .equals("it's, 'so'"), 2: .equals("")])
    #expect(
      rule.text == """
        type='signal',sender='org.bluez',path='/a',interface='org.example.I',member='M',\
        arg0='it'\\''s, '\\''so'\\''',arg2='',arg10path='/x/'
        """)
  }

  @Test(
    "Refused before the bus sees them",
    arguments: [
      MatchRule(sender: "nodot"), MatchRule(interface: "x"), MatchRule(member: "a.b"),
      MatchRule(path: "/a", pathNamespace: "/a"), MatchRule(destination: "org.bluez"),
      MatchRule(arguments: [64: .equals("")]), MatchRule(arguments: [-1: .equals("")]),
      MatchRule(arguments: [0: .equals("a\0b")]), MatchRule(arguments: [0: .path("a")]),
      MatchRule(arguments: [1: .namespace("org.x")]), MatchRule(arguments: [0: .namespace("a b")]),
      MatchRule(arguments: [0: .equals(String(repeating: "x", count: 1024))]),
    ])
  func refused(_ rule: MatchRule) { #expect(throws: DBusError.self) { try rule.check() } }

  @Test(
    "Arguments",
    arguments: [
      (MatchRule.Argument.equals("a"), DBusValue.string("a"), true), (.equals("a"), .string("b"), false),
      (.equals("/a"), .objectPath("/a"), false), (.path("/a/"), .string("/a/b"), true),
      (.path("/a/b"), .string("/a/"), true), (.path("/a/b"), .objectPath("/a/b"), true),
      (.path("/a"), .objectPath("/a/b"), false), (.namespace("org.x"), .string("org.x"), true),
      (.namespace("org.x"), .string("org.x.y"), true), (.namespace("org.x"), .string("org.xy"), false),
      (.equals("1"), .int32(1), false),
    ])
  func arguments(_ argument: MatchRule.Argument, _ value: DBusValue, _ matches: Bool) throws {
    var message = try DBusMessage.signal(path: "/a", interface: "a.b", member: "M", body: [value])
    message.sender = ":1.1"
    #expect(MatchRule(arguments: [0: argument]).matches(message, owner: nil) == matches)
    #expect(!MatchRule(arguments: [1: argument]).matches(message, owner: nil))
  }

  @Test("A well-known sender means its owner, and the bus itself")
  func senders() throws {
    var message = try DBusMessage.signal(path: "/a/b", interface: "a.b", member: "M")
    message.sender = ":1.5"
    #expect(MatchRule(sender: "org.x").matches(message, owner: ":1.5"))
    #expect(!MatchRule(sender: "org.x").matches(message, owner: ":1.6"))
    #expect(!MatchRule(sender: "org.x").matches(message, owner: nil))
    #expect(MatchRule(sender: ":1.5", pathNamespace: "/a").matches(message, owner: nil))
    #expect(!MatchRule(sender: DBusWellKnown.bus).matches(message, owner: ":1.5"))
  }
}
