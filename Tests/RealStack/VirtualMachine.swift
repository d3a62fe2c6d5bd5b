internal import ChildProcess
package import Foundation

/// A kernel with Bluetooth, bluetoothd, and controllers in software on one air, in a virtual machine without hardware support.
///
/// The guest has the root file system of this host, read-only under a layer in memory. A command runs in it as root, in a folder that it has
/// there as here; `/out` is a folder of the host. Each run boots anew, and leaves nothing behind.
package struct VirtualMachine: Sendable {
  /// How many controllers are on the air: hci0, hci1, ...; 0 starts no btvirt.
  package var controllers = 2
  /// The working folder of the command.
  package var folder = FileManager.default.currentDirectoryPath
  /// What the command finds in its environment besides PATH, HOME, USER, LANG and `BLUEHAUL_REAL_STACK=1`.
  package var environment: [String: String] = [:]
  /// What is `/out` in the guest; without one, what is written there is lost.
  package var outputFolder: URL?
  /// How long the command may run.
  package var timeLimit = Duration.seconds(300)
  /// How long each of at most three attempts may take from start to powered adapters. An idle machine needs 5 s.
  package var bootLimit = Duration.seconds(90)
  /// Records what hosts and controllers say to each other, for btmon(1) and Wireshark, as `/out/.real-stack/btsnoop`.
  package var recordsTraffic = false
  /// Switches on bluetoothd's experimental interfaces, which a user's bluetoothd does not have.
  package var experimental = false
  /// Makes bluetoothd log all that it does.
  package var verboseDaemon = false
  package var memoryMegabytes = 1536
  package var processors = 2
  package var cache = KernelCache()

  package static let bootAttempts = 3

  package init() {}

  /// Where the output of the command goes.
  package enum Stream: Sendable { case output, errors }

  package struct Report: Sendable {
    /// What the command has ended with; 128 + N for signal N.
    package let status: Int32
    /// When each phase was reached, counted from the call.
    package let phases: [Phase]
    /// Why attempts to boot have failed before the one that did not.
    package let failedBoots: [String]
    package let logs: Logs

    package init(status: Int32, phases: [Phase], failedBoots: [String], logs: Logs) {
      (self.status, self.phases, self.failedBoots, self.logs) = (status, phases, failedBoots, logs)
    }
  }

  package struct Phase: Sendable, CustomStringConvertible {
    package let name: String
    package let reached: Duration

    package var description: String {
      "\(name) \(reached.formatted(.units(allowed: [.seconds], width: .narrow, fractionalPart: .show(length: 1))))"
    }
  }

  package enum Failure: Error, CustomStringConvertible {
    /// Something is not installed, or this is the wrong machine.
    case unsupported(String)
    /// The kernel was not downloaded or not understood.
    case kernel(String)
    /// No attempt reached a stack with all adapters powered; why not, of each.
    case boot([String], Logs)
    /// The command took too long.
    case timeLimit(Duration, Logs)
    /// The machine ended in the middle of the command.
    case ended(String, Logs)

    package var description: String {
      switch self {
      case .unsupported(let reason): reason
      case .kernel(let reason): "no kernel for the virtual machine: \(reason)"
      case .boot(let reasons, _): "the virtual machine did not boot: \(reasons.joined(separator: "; "))"
      case .timeLimit(let limit, _): "the command ran longer than \(limit)"
      case .ended(let reason, _): "the virtual machine ended before the command: \(reason)"
      }
    }

    package var logs: Logs? {
      switch self {
      case .unsupported, .kernel: nil
      case .boot(_, let logs), .timeLimit(_, let logs), .ended(_, let logs): logs
      }
    }

    /// As timeout(1) has them: 124 for the time limit, 125 for what is not the command's doing.
    package var exitStatus: Int32 {
      if case .timeLimit = self { 124 } else { 125 }
    }
  }

  /// Boots, runs a command with its arguments, and gives what it says to `sink` as it comes, from one thread for each stream.
  ///
  /// Cancelling the task ends the machine. `note` gets what is worth knowing while it happens, such as a download.
  package func run(
    _ command: [String], note: @escaping @Sendable (String) -> Void = { _ in },
    sink: @escaping @Sendable (Stream, Data) -> Void
  ) async throws -> Report {
    let start = ContinuousClock.now
    if let reason = Self.obstacle { throw Failure.unsupported(reason) }
    let kernel = try await cache.filled(note: note)
    let run = try RunFolder()
    defer { run.remove() }
    let output = outputFolder ?? run.folder.appending(path: "out")
    let logs = output.appending(path: ".real-stack")
    try? FileManager.default.removeItem(at: logs)
    try FileManager.default.createDirectory(at: logs, withIntermediateDirectories: true)
    let archive = run.folder.appending(path: "initramfs")
    try (Data(contentsOf: kernel.modules) + guestFiles(command)).write(to: archive)

    var failed: [String] = []
    while failed.count < Self.bootAttempts {
      let arguments = try qemuArguments(kernel: kernel.kernel, archive: archive, output: output, logs: logs)
      let attempt = try Attempt(arguments, log: logs.appending(path: "qemu.log"), sink: sink)
      let outcome = await attempt.outcome(bootLimit: bootLimit, timeLimit: timeLimit, since: start)
      switch outcome.ending {
      case .status(let status):
        return Report(status: status, phases: outcome.phases, failedBoots: failed, logs: Logs(in: logs))
      case .timeLimit: throw Failure.timeLimit(timeLimit, Logs(in: logs))
      case .cancelled: throw CancellationError()
      case .failed(let reason) where outcome.isReady: throw Failure.ended(reason, Logs(in: logs))
      // Nothing of the command has run: booting again repeats nothing.
      case .failed(let reason):
        failed.append(reason)
        note("attempt \(failed.count) to boot failed: \(reason)")
      }
    }
    throw Failure.boot(failed, Logs(in: logs))
  }
}
