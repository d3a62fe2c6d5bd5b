internal import ChildProcess
internal import Dispatch
package import Foundation
internal import Locking

/// A program of the host that does one thing and ends.
package struct Command: Sendable {
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  package var program: String
  package var arguments: [String]
  package var environment: [String: String] = [:]

  package init(_ program: String, _ arguments: [String] = [], environment: [String: String] = [:]) {
    self.program = program
    self.arguments = arguments
    self.environment = environment
  }

  /// The program of that name in PATH, and where an administrator's programs are, which not every PATH has.
  package static func path(of program: String) -> String? {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
    return (folders.map(String.init) + ["/usr/local/sbin", "/usr/sbin", "/sbin"])
      .map { "\($0)/\(program)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// What it has printed, in lines. With a `file`, it prints into that.
  @discardableResult package func run(into file: URL? = nil, limit: Duration = .seconds(60)) async throws
    -> [String]
  {
    guard let path = program.hasPrefix("/") ? program : Self.path(of: program) else {
      throw Failure(description: "\(program) is not installed")
    }
    var handle: FileHandle?
    if let file {
      try Data().write(to: file)
      handle = try FileHandle(forWritingTo: file)
    }
    let process = try ChildProcess(
      path, arguments, environment: environment.merging(["LC_ALL": "C"]) { given, _ in given }, output: handle
    )
    let deadline = Deadline(limit) { process.send(signal: SIGKILL) }
    defer { deadline.cancel() }
    let lines = await process.allLines()
    let ending = await process.ending()
    guard ending == .exit(0) else {
      let reason =
        deadline.isOver ? "took longer than \(limit)" : "ended with \(ending.map { "\($0)" } ?? "nothing")"
      let last = (process.errors() + lines.joined(separator: "\n"))
        .split(separator: "\n").suffix(8).joined(separator: "\n")
      throw Failure(
        description:
          "\(([program] + arguments).joined(separator: " ")) \(reason)\(last.isEmpty ? "" : ":\n\(last)")")
    }
    return lines
  }
}

/// Does something once when a time is over, unless cancelled before.
package final class Deadline: Sendable {
  private enum State { case waiting, over, cancelled }
  private let state = PosixMutex(State.waiting)
  private let action: @Sendable () -> Void

  package init(_ limit: Duration, _ action: @escaping @Sendable () -> Void) {
    self.action = action
    let (seconds, attoseconds) = limit.components
    let time = DispatchTime.now() + Double(seconds) + Double(attoseconds) / 1e18
    DispatchQueue.global().asyncAfter(deadline: time) { [weak self] in self?.expire() }
  }

  package var isOver: Bool { state.withLock { $0 == .over } }

  package func cancel() { state.withLock { if $0 == .waiting { $0 = .cancelled } } }

  private func expire() {
    let expires = state.withLock { state in
      guard state == .waiting else { return false }
      state = .over
      return true
    }
    if expires { action() }
  }
}
