import Foundation
import Testing

@testable import BluehaulTool

@Suite struct CeilingCommandTests {
  /// Command lines in docs/link-budget.md, each with the lines that follow it.
  static func examples() throws -> [(line: String, output: String)] {
    try Documentation.text("docs/link-budget.md").components(separatedBy: "\n\n")
      .filter { $0.hasPrefix("    $ bluehaul ") }
      .map { block in
        let lines = block.split(separator: "\n").map { $0.dropFirst(4) }
        return (String(lines[0].dropFirst(2)), lines.dropFirst().joined(separator: "\n") + "\n")
      }
  }

  @Test func theDocumentShowsWhatTheToolPrints() async throws {
    let examples = try Self.examples()
    #expect(examples.count >= 3)
    for example in examples {
      let run = await ToolRun(example.line.split(separator: " ").dropFirst().map(String.init))
      #expect(run.code == .success)
      #expect(run.output == example.output, "\(example.line)")
    }
  }

  @Test(
    arguments: [
      (["--phy", "2M", "--mtu", "247", "--interval", "30", "--via", "gatt"], "170800.0"),
      (["--phy", "1M", "--mtu", "247", "--via", "gatt"], "97600.0"),
      (["--dle", "251", "--per", "0", "--encrypted", "no", "--via", "gatt"], "170800.0"),
    ])
  func jsonHasTheNumber(arguments: [String], ceiling: String) async throws {
    let run = await ToolRun(["ceiling", "--json"] + arguments)
    #expect(run.code == .success, "\(run.errors)")
    try Documentation.check(run.lines)
    #expect(run.lines[0].contains("\"event\":\"ceiling\""))
    #expect(run.lines[0].contains("\"ceiling\":\(ceiling),"), "\(run.lines[0])")
  }

  @Test func bothCarriersUnlessOneIsSaid() async {
    let both = await ToolRun("ceiling", "--json")
    #expect(both.lines.filter { $0.contains("\"event\":\"ceiling\"") }.count == 2)
    let one = await ToolRun("ceiling", "--json", "--via", "l2cap")
    #expect(one.lines.filter { $0.contains("\"via\":\"l2cap\"") }.count == one.lines.count)
  }

  @Test(
    "every option changes the result or is refused",
    arguments: [
      ["--phy", "1M"], ["--mtu", "185"], ["--dle", "27"], ["--interval", "7.5"], ["--packets", "4"],
      ["--encrypted", "yes", "--via", "l2cap"], ["--per", "5%"],
    ])
  func everyOptionShows(option: [String]) async {
    let plain = await ToolRun(["ceiling"] + option.suffix(option.count - 2))
    let run = await ToolRun(["ceiling"] + option)
    #expect(run.code == .success)
    let figures = { (run: ToolRun) in run.lines.filter { $0.hasPrefix("  ceiling:") } }
    #expect(figures(run) != figures(plain))
  }

  @Test(
    arguments: [
      (["--phy", "3M"], "--phy 3M: is not a PHY"), (["--mtu", "600"], "--mtu 600: must be 23...517"),
      (["--interval", "8"], "--interval 8: must be a multiple of 1.25 ms"),
      (["--interval", "7.5000000001"], "--interval 7.5000000001: is not a time"),
      (["--per", "1"], "--per 1: must be"),
      (["--phy", "S8", "--interval", "15"], "is shorter than one exchange"),
      (["--mtu", "100,dle=27"], "--mtu takes one value, not 100,dle=27"),
    ])
  func whatIsNoLinkIsRefused(arguments: [String], words: String) async {
    let run = await ToolRun(["ceiling"] + arguments)
    #expect(run.code == .usage)
    #expect(run.errors.contains(words), "\(run.errors)")
    #expect(run.output == "")
  }
}
