internal import Wording

/// Makes names and texts that come from a device, a file or the command line safe to print.
enum Printable {
  /// `text` without anything that moves the cursor, breaks the line or hides its order; at most `limit` characters.
  static func text(_ text: String, limit: Int = 200) -> String { SafeText.escaping(text, limit: limit) }

  /// `text` as one word of a shell's command line (POSIX.1-2024, Shell Command Language 2.2).
  static func shellWord(_ text: String) -> String {
    let plain = text.unicodeScalars.allSatisfy { scalar in
      scalar.isASCII
        && (scalar.properties.isAlphabetic || "0123456789/:._-+,=@%".unicodeScalars.contains(scalar))
    }
    return plain && !text.isEmpty ? text : "'\(text.replacing("'", with: #"'\''"#))'"
  }

  /// The columns that `text` takes in a terminal: two for the wide scripts, none for marks that combine.
  static func width(of text: some StringProtocol) -> Int {
    text.reduce(0) { sum, character in
      guard let first = character.unicodeScalars.first else { return sum }
      return sum + (wide.contains { $0.contains(first.value) } ? 2 : 1)
    }
  }

  /// The longest beginning of `text` that fits `columns`.
  static func prefix(of text: String, columns: Int) -> String {
    var result = ""
    var used = 0
    for character in text {
      used += width(of: String(character))
      if used > columns { break }
      result.append(character)
    }
    return result
  }

  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
    0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD,
  ]
}
