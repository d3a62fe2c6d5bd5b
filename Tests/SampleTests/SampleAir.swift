import ChildProcess
import Foundation
import TestSupport
import Testing

/// A folder in which samples meet as processes. What still runs at its end is killed.
actor SampleAir {
  private let place = TemporaryFolder()
  private var processes: [ChildProcess] = []

  nonisolated var folder: URL { URL(filePath: place.path) }

  deinit { for process in processes { process.send(signal: SIGKILL) } }

  /// Starts a sample; two of one kind need adapters of different names.
  func start(
    _ sample: String, _ arguments: [String] = [], adapter: String? = nil, environment: [String: String] = [:]
  ) throws -> ChildProcess {
    try start(program: "sample-\(sample)", arguments, adapter: adapter, environment: environment)
  }

  /// Starts any built program.
  func start(
    program: String, _ arguments: [String] = [], adapter: String? = nil, environment: [String: String] = [:]
  ) throws -> ChildProcess {
    let words = "virtual:\(folder.path)/air" + (adapter.map { "?name=\($0)" } ?? "")
    let process = try ChildProcess(
      program, arguments,
      environment: environment.merging(["COREBLUETOOTH_RADIO": words]) { $1 })
    processes.append(process)
    return process
  }

  /// Starts a sample and waits until it says that it advertises.
  func advertise(
    _ sample: String, _ arguments: [String] = [], adapter: String? = nil
  ) async throws -> ChildProcess {
    let process = try start(sample, arguments, adapter: adapter)
    let line = await process.line { $0.hasSuffix("advertising") }
    try #require(line != nil, "\(sample) does not advertise: \(process.errors())")
    return process
  }
}

/// Expects the rest of a program's output, and that it then ends by itself with success.
func expect(
  _ process: ChildProcess, says lines: [String], sourceLocation: SourceLocation = #_sourceLocation
) async {
  let said = await process.allLines()
  #expect(said == lines, sourceLocation: sourceLocation)
  let ending = await process.ending()
  #expect(ending == .exit(0), "\(process.errors())", sourceLocation: sourceLocation)
}
