import Testing
import Wording

@Suite struct SpellingTests {
  @Test(
    arguments: [
      ("", "", 0), ("push", "push", 0), ("psuh", "push", 1), ("pus", "push", 1), ("pushh", "push", 1),
      ("posh", "push", 1), ("", "push", 4), ("kitten", "sitting", 3),
    ])
  func distances(from: String, to: String, distance: Int) {
    #expect(Spelling.distance(from, to) == distance)
    #expect(Spelling.distance(to, from) == distance)
  }

  @Test(
    arguments: [
      ("psuh", "push"), ("recieve", "receive"), ("inspct", "inspect"), ("PUSH", "push"), ("xyzzy", nil),
      ("p", nil),
    ])
  func suggestions(word: String, meant: String?) {
    #expect(Spelling.closest(to: word, among: ["push", "receive", "inspect", "scan"]) == meant)
  }
}
