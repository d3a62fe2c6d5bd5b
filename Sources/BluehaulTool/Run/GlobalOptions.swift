/// Options of every command.
enum GlobalOptions {
  static let json = Flag("json", "Print one JSON object a line; docs/cli.md describes them")
  static let quiet = Flag("quiet", short: "q", "Print results and errors only")
  static let verbose = Flag("verbose", short: "v", "Print more of what happens")

  static let section = CommandDeclaration.Section(
    title: "Global options",
    options: [
      json.declaration, quiet.declaration, verbose.declaration, ArgumentParser.help.declaration,
    ], isInherited: true)
}
