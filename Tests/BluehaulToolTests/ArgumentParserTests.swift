import Testing

@testable import BluehaulTool

/// A tree with every kind of option and operand.
private enum Sample {
  static let quiet = Flag("quiet", short: "q", "Say less")
  static let size = Option("size", .size(in: 1...(1 << 20)), "How much")
  static let tag = Option("tag", .text("WORD"), "A word", repeats: true)
  static let goal = Option("to", .text("NAME"), "Where to", isRequired: true)
  static let file = Operand("FILE", .text("FILE"), "What to move", count: .oneOrMore)
  static let single = Operand("NAME", .text("NAME"), "What to show")

  static let root = CommandDeclaration(
    name: "tool", summary: "A tool",
    sections: [.init(title: "Global options", options: [quiet.declaration], isInherited: true)],
    subcommands: [
      CommandDeclaration(
        name: "send", summary: "Send files", operands: [file.declaration],
        sections: [.init(title: "Options", options: [size.declaration, tag.declaration, goal.declaration])],
        run: { _ in }),
      CommandDeclaration(
        name: "list", summary: "Work with lists",
        subcommands: [
          CommandDeclaration(
            name: "show", summary: "Show a list", operands: [single.declaration], run: { _ in })
        ]),
    ])

  static func parse(_ line: String) throws -> (CommandPath, ParsedArguments) {
    guard case .command(let path, let arguments) = try request(line) else {
      throw UnexpectedRequest()
    }
    return (path, arguments)
  }

  static func request(_ line: String) throws(UsageError) -> ArgumentParser.Request {
    try ArgumentParser(root: root).parse(line.split(separator: " ").map(String.init))
  }

  static func message(_ line: String) -> String? {
    do throws(UsageError) {
      _ = try request(line)
      return nil
    } catch {
      return error.message
    }
  }

  struct UnexpectedRequest: Error {}
}

@Suite struct ArgumentParserTests {
  @Test(
    "options are read in every form and place",
    arguments: [
      "send --size 64KiB --to b a.bin", "send --size=64KiB a.bin --to=b", "-q send a.bin --to b --size 64KiB",
      "--quiet send --to b --size 64KiB -- a.bin",
    ])
  func forms(line: String) throws {
    let (path, arguments) = try Sample.parse(line)
    #expect(path.line == "tool send")
    #expect(arguments[Sample.size] == 65536)
    #expect(arguments[Sample.goal] == "b")
    #expect(arguments.all(Sample.file) == ["a.bin"])
    #expect(arguments[Sample.quiet] == line.contains("-q"))
  }

  @Test func optionsMayRepeatWhereDeclared() throws {
    let (_, arguments) = try Sample.parse("send --tag a x --tag=b --to c y")
    #expect(arguments.all(Sample.tag) == ["a", "b"])
    #expect(arguments.all(Sample.file) == ["x", "y"])
  }

  @Test func afterTwoDashesEverythingIsAnOperand() throws {
    let (_, arguments) = try Sample.parse("send --to c -- --size -q - --")
    #expect(arguments.all(Sample.file) == ["--size", "-q", "-", "--"])
  }

  @Test func aValueThatLooksLikeAnOptionNeedsTheFormWithEquals() throws {
    let (_, arguments) = try Sample.parse("send --to=--size x")
    #expect(arguments[Sample.goal] == "--size")
    #expect(Sample.message("send --to --size x") == "--to needs a value: --to NAME")
    #expect(Sample.message("send x --to -q") == "--to needs a value: --to NAME")
  }

  @Test(
    "what is wrong is said with the option and the value",
    arguments: [
      ("sned x", "\"sned\" is no command of tool; did you mean send?"),
      ("zebra", "\"zebra\" is no command of tool; there are send, list"),
      ("list shwo", "\"shwo\" is no command of tool list; did you mean show?"),
      ("list", "tool list needs a command: show"),
      ("", "tool needs a command: send, list"),
      ("send --to b --sise 1 x", "\"--sise\" is no option of tool send; did you mean --size?"),
      (
        "send --to b --colour x",
        "\"--colour\" is no option of tool send; there are --size, --tag, --to, --quiet"
      ),
      ("--size 3 send x --to b", "\"--size\" goes behind its command: tool send --size"),
      ("send --to b --quiet=yes x", "--quiet takes no value, not \"yes\""),
      ("send --to b --to c x", "--to is given twice"),
      ("send --to", "--to needs a value: --to NAME"),
      ("send --to b", "tool send needs FILE: what to move"),
      ("send x", "tool send needs --to NAME: where to"),
      ("list show a b", "\"b\" is one operand too many for tool list show"),
      ("send --to b --size 2MiB x", "--size: \"2MiB\" is out of range: from 1 to 1048576 bytes"),
      ("send --to b --size= x", "--size: \"\" is not a size"),
      ("send -x", "\"-x\" is no option of tool send"),
    ])
  func messages(line: String, expected: String) throws {
    let message = try #require(Sample.message(line))
    #expect(message.hasPrefix(expected))
  }

  @Test(
    "help is given whatever else is wrong",
    arguments: [
      ("--help", "tool"), ("send --help", "tool send"), ("send -h --nonsense", "tool send"),
      ("list show a b -h", "tool list show"), ("list -h", "tool list"),
    ])
  func help(line: String, command: String) throws {
    guard case .help(let path) = try Sample.request(line) else {
      Issue.record("no help for \(line)")
      return
    }
    #expect(path.line == command)
  }

  @Test func helpOnAnUnknownCommandIsAnErrorWithASuggestion() {
    #expect(Sample.message("sned --help") == "\"sned\" is no command of tool; did you mean send?")
  }

  @Test func helpAfterTwoDashesIsAnOperand() throws {
    let (_, arguments) = try Sample.parse("send --to b -- --help")
    #expect(arguments.all(Sample.file) == ["--help"])
  }

  @Test func errorsNeverCarryControlCharacters() throws {
    let message = try #require(Sample.message("se\u{1B}[31mnd"))
    #expect(message.contains("se\\u{1B}[31mnd"))
  }
}
