internal import Foundation

/// Writes JSON in the layout that `docs/manifest.md` fixes, keys in the order in which they are given.
enum JSONText {
  indirect enum Value {
    case text(String)
    case number(String)
    case object([(key: String, value: Value?)])
    case array([Value])
  }

  /// The text of a value and a final line feed; members without a value are left out.
  static func encode(_ value: Value) -> Data {
    var text = ""
    append(value, to: &text, indent: 0)
    text += "\n"
    return Data(text.utf8)
  }

  private static func append(_ value: Value, to text: inout String, indent: Int) {
    switch value {
    case .text(let string): text += quoted(string)
    case .number(let digits): text += digits
    case .object(let members):
      let present = members.compactMap { member in member.value.map { (member.key, $0) } }
      appendList(present, "{", "}", to: &text, indent: indent) { member, text in
        text += "\(quoted(member.0)): "
        append(member.1, to: &text, indent: indent + 1)
      }
    case .array(let values):
      appendList(values, "[", "]", to: &text, indent: indent) { value, text in
        append(value, to: &text, indent: indent + 1)
      }
    }
  }

  private static func appendList<Element>(
    _ elements: [Element], _ open: String, _ close: String, to text: inout String, indent: Int,
    _ body: (Element, inout String) -> Void
  ) {
    text += open
    for (index, element) in elements.enumerated() {
      text += (index == 0 ? "\n" : ",\n") + String(repeating: "  ", count: indent + 1)
      body(element, &text)
    }
    if !elements.isEmpty { text += "\n" + String(repeating: "  ", count: indent) }
    text += close
  }

  private static func quoted(_ string: String) -> String {
    var text = "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case _ where scalar.value < 0x20: text += "\\u00" + [UInt8(scalar.value)].hex
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text + "\""
  }
}

extension JSONText.Value {
  static func number(_ value: some BinaryInteger) -> Self { .number(String(value)) }

  /// A time in UTC to the second.
  static func time(_ date: Date) -> Self { .text(date.formatted(.iso8601)) }
}
