/// One command being run: its values, and where it tells what happens.
struct Invocation: Sendable {
  let arguments: ParsedArguments
  let environment: ToolEnvironment
  let printer: any EventPrinter
}
