import CDBus
import Testing

@testable import DBus

@Suite("Signatures")
struct SignatureTests {
  @Test(
    "Text to types and back",
    arguments: [
      ("", [DBusType]()), ("s", [.string]), ("ay", [.array(of: .byte)]),
      ("a{sv}", [.dictionary(key: .string, value: .variant)]),
      ("(ii)h", [.structure([.int32, .int32]), .descriptor]),
      (
        "a{oa{sa{sv}}}",
        [
          .dictionary(
            key: .objectPath,
            value: .dictionary(key: .string, value: .dictionary(key: .string, value: .variant)))
        ]
      ),
      (
        "aa(ya(bnqiuxtdsogv))",
        [
          .array(
            of: .array(
              of: .structure([
                .byte,
                .array(
                  of: .structure([
                    .boolean, .int16, .uint16, .int32, .uint32, .int64, .uint64, .double, .string,
                    .objectPath, .signature, .variant,
                  ])),
              ])))
        ]
      ),
    ])
  func parses(_ text: String, _ types: [DBusType]) throws {
    let signature = try DBusSignature(text)
    #expect(signature.types == types)
    #expect(try DBusSignature(types).text == text)
  }

  @Test(
    "Refused with a reason",
    arguments: [
      "a", "(", ")", "()", "(s", "a{s}", "a{vs}", "a{ss", "a{sss}", "{ss}", "z", "e", "r", "a{(s)s}", "s\0",
      "ä",
      "a)", "(a)",
    ])
  func refuses(_ text: String) {
    let error = #expect(throws: DBusError.self) { try DBusSignature(text) }
    #expect(error?.kind == .invalidArgument)
    #expect(error?.name == DBusErrorName.invalidSignature)
  }

  @Test("32 levels of arrays and of structures, not 33; 255 octets, not 256", arguments: [32, 33])
  func limits(_ depth: Int) {
    let isValid = depth == 32
    let arrays = String(repeating: "a", count: depth) + "y"
    let structures = String(repeating: "(", count: depth) + "y" + String(repeating: ")", count: depth)
    let length = String(repeating: "y", count: 223 + depth)
    for text in [arrays, structures, length] {
      #expect(((try? DBusSignature(text)) != nil) == isValid)
      let library = unsafe dbus_signature_validate(text, nil) != 0
      #expect(library == isValid)
    }
  }

  @Test(
    "Types that make no signature",
    arguments: [
      DBusType.structure([]), .dictionary(key: .variant, value: .byte), .array(of: .structure([])),
    ])
  func types(_ type: DBusType) { #expect(throws: DBusError.self) { try DBusSignature([type]) } }

  @Test("Random text is taken exactly where libdbus takes it", arguments: 0..<8 as Range<UInt64>)
  func likeLibrary(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let alphabet = Array("aaa(){}ysvioghbz")
    for _ in 0..<5000 {
      let count = Int.random(in: 0..<12, using: &generator)
      let text = String((0..<count).map { _ in alphabet.randomElement(using: &generator) ?? "a" })
      let library = unsafe dbus_signature_validate(text, nil) != 0
      #expect(((try? DBusSignature(text)) != nil) == library, "\(text)")
    }
  }
}
