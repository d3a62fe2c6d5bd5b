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

  /// Makes bytes in which there is nothing to be found: they do not shrink.
  static func noise(_ count: Int, seed: UInt64 = 7) -> Data {
    var random = SeededGenerator(seed: seed)
    return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
  }

  func contents(_ path: String) throws -> Data { try Data(contentsOf: URL(filePath: "\(folder)/\(path)")) }

  func names(in path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "\(folder)/\(path)").filter { !$0.hasPrefix(".") }
      .sorted()
  }

  func run(_ arguments: String...) async -> ToolRun { await run(arguments) }

  /// - Parameter moment: something to be done in the course of what is sent.
  func run(
    _ arguments: [String], output: MemorySink? = nil, interrupts: Interrupts = Interrupts(exit: {}),
    at moment: SendingMoment? = nil
  ) async -> ToolRun {
    await ToolRun(
      arguments, variables: ["XDG_STATE_HOME": "\(folder)/state", "COREBLUETOOTH_RADIO": "virtual:bench"],
      output: output, interrupts: interrupts
    ) { [self] request in
      let radio = air.makeRadio(name: request.name)
      radios.withLock { $0[request.name] = radio }
      if let moment { return SendingRadio(radio, moment: moment) }
      return radio
    }
  }

  /// Runs the tool, and does once what Ctrl-C does: when so many octets were sent.
  func run(_ arguments: [String], interruptedAt octets: Int) async -> ToolRun {
    let interrupts = Interrupts(exit: {})
    return await run(
      arguments, interrupts: interrupts, at: SendingMoment(octets: octets) { interrupts.raise() })
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
