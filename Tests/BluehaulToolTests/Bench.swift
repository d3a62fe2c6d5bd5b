import Foundation
import Radio
import Testing
import VirtualRadio

@testable import BluehaulTool

/// A simulated air in lock-step time, a folder for everything, and the tool run on both.
final class Bench: Sendable {
  let folder: String
  private let clock = VirtualClock(.lockStep)
  private let air: VirtualAir

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "bench-\(UUID())").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    air = VirtualAir(clock: clock)
    try clock.start { Issue.record($0) }
  }

  deinit {
    clock.stop()
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// Makes a file of bytes that do not repeat: a firmware image without a header.
  func file(_ name: String, size: Int, seed: UInt64 = 7) throws -> String {
    let path = "\(folder)/\(name)"
    try Data(SampleImage.data(size: size + 512, seed: seed).dropFirst(512)).write(to: URL(filePath: path))
    return path
  }

  func contents(_ path: String) throws -> Data { try Data(contentsOf: URL(filePath: "\(folder)/\(path)")) }

  func names(in path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "\(folder)/\(path)").filter { !$0.hasPrefix(".") }
      .sorted()
  }

  func run(
    _ arguments: String..., output: MemorySink? = nil, interrupts: Interrupts = Interrupts(exit: {})
  ) async -> ToolRun {
    await run(arguments, output: output, interrupts: interrupts)
  }

  func run(
    _ arguments: [String], output: MemorySink? = nil, interrupts: Interrupts = Interrupts(exit: {})
  ) async -> ToolRun {
    await ToolRun(
      arguments, variables: ["XDG_STATE_HOME": "\(folder)/state", "COREBLUETOOTH_RADIO": "virtual:bench"],
      output: output, interrupts: interrupts
    ) { [air] request in air.makeRadio(name: request.name) }
  }

  /// A receiver that advertises; to be stopped.
  func receiver(_ options: String...) async -> RunningReceiver {
    let output = MemorySink()
    let interrupts = Interrupts(exit: {})
    let place = options.contains("--into") ? [] : ["--into", "\(folder)/in"]
    let arguments = ["receive", "--name", "bench-1"] + place + options
    let run = Task { await self.run(arguments, output: output, interrupts: interrupts) }
    await output.wait(for: options.contains("--json") ? "\"ready\"" : "receiving as bench-1")
    return RunningReceiver(run: run, interrupts: interrupts)
  }
}

struct RunningReceiver {
  let run: Task<ToolRun, Never>
  let interrupts: Interrupts

  /// Ends it as Ctrl-C does.
  func stop() async -> ToolRun {
    interrupts.raise()
    return await run.value
  }
}
