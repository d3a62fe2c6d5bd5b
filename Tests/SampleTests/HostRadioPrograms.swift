import ChildProcess
import Foundation
import RealStack
import TestSupport
import Testing

/// Samples as processes on adapters of the virtual machine, unchanged. What still runs at its end is killed.
actor HostRadioPrograms {
  private let place = TemporaryFolder()
  private var processes: [ChildProcess] = []

  /// The adapter of the programs in the central role.
  static let central = "hci0"

  nonisolated var folder: URL { URL(filePath: place.path) }

  deinit { for process in processes { process.send(signal: SIGKILL) } }

  /// Starts a sample.
  func start(_ sample: String, _ arguments: [String] = [], on adapter: String = central) throws
    -> ChildProcess
  {
    let process = try ChildProcess(
      "sample-\(sample)", arguments,
      environment: ["COREBLUETOOTH_RADIO": "bluez:\(adapter)", "XDG_STATE_HOME": place.path("state")],
      endsWithParent: true)
    processes.append(process)
    return process
  }

  /// Starts a sample and waits until it says that it advertises.
  func advertise(_ sample: String, _ arguments: [String] = [], on adapter: String = "hci1") async throws
    -> ChildProcess
  {
    let process = try start(sample, arguments, on: adapter)
    let line = await process.line { $0.hasSuffix("advertising") }
    try #require(line != nil, "\(sample) does not advertise: \(process.errors())")
    return process
  }

  /// Starts a sample and waits for its first line, which needs that it hears one of the adapters.
  func start(
    _ sample: String, _ arguments: [String] = [], hearing adapters: [String]
  ) async throws -> (process: ChildProcess, first: String?) {
    let process = try start(sample, arguments)
    let line = try await Guest.repeatingAdvertising(of: adapters) { await process.line { _ in true } }
    return (process, line)
  }
}
