import Testing
import Wording

@Suite struct SafeTextTests {
  @Test(
    arguments: [
      ("plain", "plain"), ("bell\u{7}", "bell\\u{7}"), ("\u{1B}[2J", "\\u{1B}[2J"), ("a\nb", "a\\u{A}b"),
      ("\u{202E}abc", "\\u{202E}abc"), ("\u{9B}31m", "\\u{9B}31m"), ("naïve – 漢字", "naïve – 漢字"),
      ("\u{E000}", "\\u{E000}"), ("a\u{2028}b", "a\\u{2028}b"),
    ])
  func whatCouldForgeOutputIsWrittenOut(text: String, shown: String) {
    #expect(SafeText.escaping(text) == shown)
    #expect(text.unicodeScalars.allSatisfy(SafeText.isHarmless) == (text == shown))
  }

  @Test(arguments: [(300, 20), (21, 20), (20, 20), (0, 20)])
  func longTextIsCut(count: Int, limit: Int) {
    let shown = SafeText.escaping(String(repeating: "x", count: count), limit: limit)
    #expect(shown == String(repeating: "x", count: min(count, limit)) + (count > limit ? "…" : ""))
  }
}
