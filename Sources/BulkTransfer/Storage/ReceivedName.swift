/// A name that came over the air and is fit to be a file's name in a folder.
///
/// The rule: 1 to 200 bytes of UTF-8; no `/` and no `\`; no control, format, separator, private or unassigned characters; no `.` or `-` at the
/// start; no white space at either end. Anything else is refused and not mapped, since two names mapped to one would be one file.
struct ReceivedName: Hashable, Sendable {
  /// Leaves room for a number within the usual limit of 255 bytes.
  static let longest = TransferManifest.Object.longestName

  let text: String

  /// - Throws: `nameNotAcceptable`, with the reason and the name made printable.
  init(checking text: String) throws(TransferError) {
    self.text = text
    if let reason = Self.fault(in: text) {
      throw TransferError(
        .nameNotAcceptable, "the name \"\(text.cut(to: 60).printable)\" is not acceptable: \(reason)",
        advice: "send it under another name")
    }
  }

  private static func fault(in text: String) -> String? {
    guard let first = text.unicodeScalars.first, let last = text.unicodeScalars.last else {
      return "it is empty"
    }
    if text.utf8.count > longest { return "it has \(text.utf8.count) bytes, more than \(longest)" }
    if first == "." { return "it starts with a dot" }
    if first == "-" { return "it starts with a dash" }
    if first.properties.isWhitespace || last.properties.isWhitespace {
      return "it starts or ends with white space"
    }
    for scalar in text.unicodeScalars {
      if scalar == "/" || scalar == "\\" { return "it has a path separator in it" }
      if scalar.isUnprintable { return "it has a character in it that cannot be printed" }
    }
    return nil
  }

  /// The name with a number before its last extension: `fw-2.bin`.
  func numbered(_ number: Int) -> String {
    guard let dot = text.lastIndex(of: "."), dot != text.startIndex else { return "\(text)-\(number)" }
    return "\(text[..<dot])-\(number)\(text[dot...])"
  }
}
