internal import CLinux
internal import ChildProcess
internal import Foundation
internal import Glibc
internal import Locking

/// One start of QEMU, until the guest has told how its command ended, or until it has failed to.
final class Attempt: Sendable {
  struct Outcome {
    enum Ending {
      case status(Int32)
      case timeLimit
      case cancelled
      case failed(String)
    }
    var ending: Ending
    var phases: [VirtualMachine.Phase] = []
    var isReady: Bool { phases.contains { $0.name == "ready" } }
  }

  private let process: ChildProcess
  private let control: AsyncStream<String>
  /// Ends when both streams of the command have ended.
  private let streams: AsyncStream<Never>
  /// How long a guest may need to bring its logs back after its command.
  private static let grace = Duration.seconds(45)

  init(_ arguments: [String], log: URL, sink: @escaping @Sendable (VirtualMachine.Stream, Data) -> Void)
    throws
  {
    let pipes = try (0..<3).map { _ in try Pipe() }
    if !FileManager.default.fileExists(atPath: log.path) { try Data().write(to: log) }
    let output = try FileHandle(forWritingTo: log)
    try output.seekToEnd()
    let program = "qemu-system-x86_64"
    process = try ChildProcess(
      Command.path(of: program) ?? program, arguments, output: output, inherited: pipes.map(\.writer),
      endsWithParent: true)
    pipes.forEach { $0.closeWriter() }

    let (control, line) = AsyncStream.makeStream(of: String.self)
    self.control = control
    let lines = LineBuffer()
    Thread.detachNewThread {
      pipes[0].readAll { lines.append($0).forEach { line.yield($0) } }
      line.finish()
    }
    let (streams, ends) = AsyncStream.makeStream(of: Never.self)
    self.streams = streams
    let open = OpenStreams(2)
    for (pipe, stream) in [(pipes[1], VirtualMachine.Stream.output), (pipes[2], .errors)] {
      Thread.detachNewThread {
        pipe.readAll { sink(stream, $0) }
        if open.closeOne() { ends.finish() }
      }
    }
  }

  func outcome(bootLimit: Duration, timeLimit: Duration, since start: ContinuousClock.Instant) async
    -> Outcome
  {
    await withTaskCancellationHandler {
      await watched(bootLimit: bootLimit, timeLimit: timeLimit, since: start)
    } onCancel: {
      process.send(signal: SIGKILL)
    }
  }

  private func watched(
    bootLimit: Duration, timeLimit: Duration, since start: ContinuousClock.Instant
  ) async -> Outcome {
    var outcome = Outcome(ending: .failed("QEMU ended"))
    var limit = bootLimit
    var deadline = Deadline(limit) { [process] in process.send(signal: SIGKILL) }
    var told = false
    var ready = start
    lines: for await line in control {
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      guard words.count == 2 else { continue }
      switch words[0] {
      case "phase":
        outcome.phases.append(VirtualMachine.Phase(name: words[1], reached: .now - start))
        guard words[1] == "ready" else { continue }
        deadline.cancel()
        ready = .now
        limit = timeLimit + Self.grace
        deadline = Deadline(limit) { [process] in process.send(signal: SIGKILL) }
      case "failed":
        outcome.ending = .failed(words[1])
        told = true
        break lines
      case "exit":
        // timeout(1) ends with 124, or with 137 where it had to kill; so may a command that was in time.
        let isLate = ["124", "137"].contains(words[1]) && .now - ready >= timeLimit
        outcome.ending = isLate ? .timeLimit : .status(Int32(words[1]) ?? 125)
        told = true
        break lines
      default: continue
      }
    }
    deadline.cancel()
    process.send(signal: SIGKILL)
    let ending = await process.ending()
    for await _ in streams {}
    if Task.isCancelled, !told { return Outcome(ending: .cancelled, phases: outcome.phases) }
    guard !told else { return outcome }
    let after = outcome.phases.last.map { "after the phase \($0.name)" } ?? "before the guest said anything"
    let errors = process.errors().split(separator: "\n").last.map { ": \($0)" } ?? ""
    if !deadline.isOver {
      outcome.ending = .failed("QEMU ended (\(ending.map { "\($0)" } ?? "?")) \(after)\(errors)")
    } else if outcome.isReady {
      outcome.ending = .timeLimit
    } else {
      outcome.ending = .failed("no stack within \(limit), hung \(after)\(errors)")
    }
    return outcome
  }
}

private final class OpenStreams: Sendable {
  private let count: PosixMutex<Int>

  init(_ count: Int) { self.count = PosixMutex(count) }

  /// Whether that was the last one.
  func closeOne() -> Bool {
    count.withLock {
      $0 -= 1
      return $0 == 0
    }
  }
}

/// Makes lines of bytes that come in pieces.
private final class LineBuffer: Sendable {
  private let rest = PosixMutex(Data())
  /// A guest that sends no line feed is not collected for ever.
  private static let longest = 4096

  func append(_ data: Data) -> [String] {
    rest.withLock { rest in
      rest += data
      var lines: [String] = []
      while let end = rest.firstIndex(of: 0x0A) {
        lines.append(String(decoding: rest[..<end], as: UTF8.self))
        rest = Data(rest[rest.index(after: end)...])
      }
      if rest.count > Self.longest { rest = Data() }
      return lines
    }
  }
}

/// A pipe(2) whose ends are closed in other processes that start meanwhile.
private struct Pipe: Sendable {
  let reader: Int32
  let writer: Int32

  init() throws {
    var ends: [Int32] = [-1, -1]
    guard unsafe clinux_closing_pipe(&ends) == 0 else {
      throw VirtualMachine.Failure.unsupported("no pipe: \(unsafe String(cString: strerror(errno)))")
    }
    (reader, writer) = (ends[0], ends[1])
  }

  func closeWriter() { close(writer) }

  /// Reads until the end and closes the reading end.
  func readAll(_ handle: (Data) -> Void) {
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = unsafe read(reader, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      if count <= 0 { break }
      handle(Data(buffer.prefix(count)))
    }
    close(reader)
  }
}
