import Foundation
import Synchronization

/// The built tool as a process of its own, for what only a process shows: signals, pipes, being killed.
final class ToolProcess: Sendable {
  struct Ending: Equatable {
    /// The exit status, or the signal that ended it.
    var status: Int32
    var wasKilled: Bool

    static func exit(_ status: Int32) -> Ending { Ending(status: status, wasKilled: false) }
    static func signal(_ number: Int32) -> Ending { Ending(status: number, wasKilled: true) }
  }

  /// Lines of standard output as they come, without their line feeds; ends with the output.
  let lines: AsyncStream<String>
  private let process: Process
  private let endings: AsyncStream<Ending>
  private let errorText: FileHandle

  /// The executable stands beside the test bundle.
  static let executable = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent().appending(path: "bluehaul")

  /// Starts the tool; `output` nil: ``lines`` tells what it prints.
  init(
    _ arguments: [String], environment: [String: String] = [:], directory: URL? = nil,
    output: FileHandle? = nil
  ) throws {
    let process = Process()
    process.executableURL = Self.executable
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.currentDirectoryURL = directory
    process.standardInput = FileHandle.nullDevice
    let (lines, line) = AsyncStream.makeStream(of: String.self)
    if let output {
      process.standardOutput = output
      line.finish()
    } else {
      let pipe = Pipe()
      process.standardOutput = pipe
      let buffer = Mutex(Data())
      pipe.fileHandleForReading.readabilityHandler = { handle in
        let data = handle.availableData
        if data.isEmpty {
          handle.readabilityHandler = nil
          line.finish()
          return
        }
        buffer.withLock { buffer in
          buffer += data
          while let end = buffer.firstIndex(of: 0x0A) {
            line.yield(String(decoding: buffer[..<end], as: UTF8.self))
            buffer.removeSubrange(...end)
          }
        }
      }
    }
    let errors = FileManager.default.temporaryDirectory.appending(path: "bluehaul-\(UUID()).stderr")
    try Data().write(to: errors)
    errorText = try FileHandle(forUpdating: errors)
    try FileManager.default.removeItem(at: errors)
    process.standardError = errorText
    let (endings, ending) = AsyncStream.makeStream(of: Ending.self)
    process.terminationHandler = { process in
      ending.yield(
        Ending(status: process.terminationStatus, wasKilled: process.terminationReason == .uncaughtSignal))
      ending.finish()
    }
    self.lines = lines
    self.endings = endings
    self.process = process
    try process.run()
  }

  func send(signal: Int32) { kill(process.processIdentifier, signal) }

  /// Waits for the end of the process; to be called once.
  func ending() async -> Ending? {
    for await ending in endings { return ending }
    return nil
  }

  /// What was written to standard error, after the end.
  func errors() throws -> String {
    try errorText.seek(toOffset: 0)
    return String(decoding: try errorText.readToEnd() ?? Data(), as: UTF8.self)
  }

  /// The first line that `matches`, after the lines before it were read; nil where the output has ended.
  func line(where matches: (String) -> Bool) async -> String? {
    for await line in lines where matches(line) { return line }
    return nil
  }

  /// The rest of the output.
  func allLines() async -> [String] {
    var all: [String] = []
    for await line in lines { all.append(line) }
    return all
  }
}
