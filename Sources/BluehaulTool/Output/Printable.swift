internal import Wording

/// Makes names and texts that come from a device, a file or the command line safe to print.
enum Printable {
  /// `text` without anything that moves the cursor, breaks the line or hides its order; at most `limit` characters.
  static func text(_ text: String, limit: Int = 200) -> String { SafeText.escaping(text, limit: limit) }

  /// `text` as one word of a shell's command line (POSIX.1-2024, Shell Command Language 2.2), safe to print itself: where something in it is not,
  /// in the form of 2.2.4, which is younger than the others and is read by bash, zsh and BusyBox.
  static func shellWord(_ text: String) -> String {
    let plain = text.unicodeScalars.allSatisfy { scalar in
      scalar.isASCII
        && (scalar.properties.isAlphabetic || "0123456789/:._-+,=@%".unicodeScalars.contains(scalar))
    }
    if plain && !text.isEmpty { return text }
    guard !text.unicodeScalars.allSatisfy(SafeText.isHarmless) else {
      return "'\(text.replacing("'", with: #"'\''"#))'"
    }
    let pieces = text.unicodeScalars.map { scalar in
      switch scalar {
      case "'", "\\": "\\\(scalar)"
      case _ where SafeText.isHarmless(scalar): String(scalar)
      default: String(scalar).utf8.map(octal).joined()
      }
    }
    return "$'\(pieces.joined())'"
  }

  /// An option with its value, as two words of a shell's command line, or as one where the value would be taken for an option.
  static func shellOption(_ name: String, _ value: String) -> String {
    "--\(name)\(value.hasPrefix("-") ? "=" : " ")\(shellWord(value))"
  }

  private static func octal(_ octet: UInt8) -> String {
    let digits = String(octet, radix: 8)
    return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
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
