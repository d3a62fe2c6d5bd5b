import Foundation
import Locking
import Radio
import TestSupport
import Testing
import VirtualRadio

@testable import BluehaulTool

/// A simulated air in lock-step time, a folder for everything, and the tool run on both.
final class Bench: Sendable {
  private let place = TemporaryFolder()
  private let clock = VirtualClock(.lockStep)
  private let air: VirtualAir

  /// The adapter that a run was given last, by its name.
  private let radios = PosixMutex([String: VirtualRadio]())

  init(link: LinkParameters = LinkParameters()) throws {
    air = VirtualAir(clock: clock, link: link)
    try clock.start { Issue.record($0) }
  }

  var folder: String { place.path }

  deinit { clock.stop() }

  /// Takes the adapter of the last command but `receive` out of reach, for a while from now.
  func takeAwaySender(for time: Duration) {
    guard let radio = radios.withLock({ $0.first { $0.key.hasPrefix("bluehaul-") }?.value }) else { return }
    air.setInReach(false, of: radio)
    _ = clock.schedule(after: time) { [air] in air.setInReach(true, of: radio) }
  }

  /// Takes the device of that name out of reach, or brings it back.
  func setInReach(_ isInReach: Bool, _ device: String) {
    guard let radio = radios.withLock({ $0[device] }) else { return }
    air.setInReach(isInReach, of: radio)
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
    ) { [self] request in
      let radio = air.makeRadio(name: request.name)
      radios.withLock { $0[request.name] = radio }
      return radio
    }
  }

  /// A receiver that advertises; to be stopped.
  func receiver(_ options: String..., named name: String = "bench-1") async -> RunningReceiver {
    let output = MemorySink()
    let interrupts = Interrupts(exit: {})
    let place = options.contains("--into") ? [] : ["--into", "\(folder)/in"]
    let arguments = ["receive", "--name", name] + place + options
    let run = Task { await self.run(arguments, output: output, interrupts: interrupts) }
    await output.wait(for: options.contains("--json") ? "\"ready\"" : "receiving as \(name)")
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
