import BlueZRadio
import Radio

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

  /// - Parameters:
  ///   - output: where the output goes, for who wants to see it while the tool runs.
  ///   - radio: makes the radios that the tool asks for.
  ///   - examine: what is found on the host.
  init(
    _ arguments: [String], variables: [String: String] = [:], columns: Int? = nil, output: MemorySink? = nil,
    interrupts: Interrupts = Interrupts(exit: {}),
    radio: (@Sendable (RadioRequest) throws -> any Radio)? = nil,
    examine: (@Sendable (String?) async -> [Finding])? = nil
  ) async {
    let output = output ?? MemorySink()
    let errors = MemorySink()
    let start = ContinuousClock.now
    var environment = ToolEnvironment(
      variables: variables, output: output, errors: errors, terminalColumns: nil,
      now: { ContinuousClock.now - start })
    if let columns { environment.terminalColumns = { columns } }
    if let examine { environment.examine = examine }
    if let radio {
      environment.radio = radio
      environment.deviceRadio = radio
    }
    code = await Bluehaul.run(arguments, in: environment, interrupts: interrupts)
    self.output = output.text
    self.errors = errors.text
  }
}
