/// Text that comes from a device, a file or a command line, made safe to print.
package enum SafeText {
  /// `text` without anything that moves a cursor, breaks a line or hides its order: such a character is written as `\u{1B}`. At most `limit`
  /// characters, and then an ellipsis.
  package static func escaping(_ text: String, limit: Int = .max) -> String {
    var result = ""
    var length = 0
    for scalar in text.unicodeScalars {
      let piece =
        isHarmless(scalar) ? String(scalar) : "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      length += piece.unicodeScalars.count
      if length > limit { return result + "…" }
      result += piece
    }
    return result
  }

  /// Whether it is a visible character or a space: no control, line separator, direction mark, unassigned or private one.
  package static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
    default: true
    }
  }
}
