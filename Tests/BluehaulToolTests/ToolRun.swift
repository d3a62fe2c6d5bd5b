@testable import BluehaulTool

/// One run of the tool within the test's process.
struct ToolRun {
  let code: ExitCode
  let output: String
  let errors: String

  var lines: [String] { output.split(separator: "\n").map(String.init) }

  init(_ arguments: String..., variables: [String: String] = [:], columns: Int? = nil) async {
    await self.init(arguments, variables: variables, columns: columns)
  }

  init(_ arguments: [String], variables: [String: String] = [:], columns: Int? = nil) async {
    let output = MemorySink()
    let errors = MemorySink()
    let start = ContinuousClock.now
    var environment = ToolEnvironment(
      variables: variables, output: output, errors: errors, terminalColumns: nil,
      now: { ContinuousClock.now - start })
    if let columns { environment.terminalColumns = { columns } }
    code = await Bluehaul.run(arguments, in: environment, interrupts: Interrupts(exit: {}))
    self.output = output.text
    self.errors = errors.text
  }
}
