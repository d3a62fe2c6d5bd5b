internal import Dispatch
internal import Foundation

/// What a small program of the system prints.
enum ProgramOutput {
  /// timeout(1), which ends a program that takes too long.
  private static let limiter = "/usr/bin/timeout"

  /// The first line that a program prints within five seconds; nil where it is not there, fails or takes longer.
  static func firstLine(of path: String, _ arguments: [String]) async -> String? {
    guard FileManager.default.isExecutableFile(atPath: path) else { return nil }
    return await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(returning: run(["--kill-after=1", "5", path] + arguments))
      }
    }
  }

  private static func run(_ arguments: [String]) -> String? {
    let process = Process()
    process.executableURL = URL(filePath: limiter)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    do { try process.run() } catch { return nil }
    // A version is short; whatever else it says is of no interest.
    let data = (try? output.fileHandleForReading.read(upToCount: 4096)) ?? Data()
    process.waitUntilExit()
    let line = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).first
    return process.terminationStatus == 0 ? line.map(String.init) : nil
  }
}
