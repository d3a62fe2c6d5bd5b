import ChildProcess
import Foundation
import Locking
import RealStack
import Testing

/// The built tool as sender and receiver, and a folder for all that they keep. What it has started ends with it.
final class ToolBench: Sendable {
  static let address = Guest.address(of: 1)
  static let name = "bench-1"

  let folder: String
  let image: Data
  private let children = PosixMutex<[ChildProcess]>([])

  /// Runs `body` on adapters that know nothing of each other, with an image of `size` octets.
  static func use(size: Int = 100_000, _ body: (ToolBench) async throws -> Void) async throws {
    try await Adapters.prepare()
    let bench = try ToolBench(size: size)
    do { try await body(bench) } catch {
      await bench.end()
      throw error
    }
    await bench.end()
  }

  private init(size: Int) throws {
    folder =
      FileManager.default.temporaryDirectory.appending(path: "tool-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    // Bytes that do not repeat, so that every confusion of offsets shows.
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    image = Data(
      (0..<size).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 56)
      })
    try image.write(to: URL(filePath: "\(folder)/fw.bin"))
  }

  private func end() async {
    for child in children.withLock({ $0 }) {
      child.send(signal: SIGKILL)
      _ = await child.ending()
    }
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// What a receiver has accepted, once it has its name.
  func received(in directory: String = "in") -> Data? {
    try? Data(contentsOf: URL(filePath: "\(folder)/\(directory)/fw.bin"))
  }

  /// Starts the tool.
  func tool(_ arguments: [String]) throws -> ChildProcess {
    let child = try ChildProcess(
      "bluehaul", arguments, environment: ["XDG_STATE_HOME": "\(folder)/state"], endsWithParent: true)
    children.withLock { $0.append(child) }
    return child
  }

  /// A receiver that can be found.
  func receiver(
    on adapter: String = "hci1", into directory: String = "in", _ options: String...,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> ChildProcess {
    let receiver = try tool(
      [
        "receive", "--json", "--radio", "bluez:\(adapter)", "--name", Self.name, "--into",
        "\(folder)/\(directory)",
      ] + options)
    try await receiver.isReady(sourceLocation: sourceLocation)
    return receiver
  }

  func push(to device: String = ToolBench.address, _ options: String...) throws -> ChildProcess {
    try tool(["push", "\(folder)/fw.bin", "--json", "--radio", "bluez:hci0", "--to", device] + options)
  }

  func resume(_ options: String...) throws -> ChildProcess { try tool(["resume", "--json"] + options) }

  /// Ends a receiver as Ctrl-C does.
  func stop(_ receiver: ChildProcess, sourceLocation: SourceLocation = #_sourceLocation) async {
    receiver.send(signal: SIGINT)
    #expect(await receiver.ending() == .exit(130), "\(receiver.errors())", sourceLocation: sourceLocation)
  }
}

/// How bluetoothd goes and comes back.
enum Restart: String, CaseIterable, Sendable, CustomTestStringConvertible {
  /// As in a crash: adapters keep their power.
  case killed
  /// As systemd does it: the daemon switches the adapters off before it ends.
  case stopped

  var testDescription: String { rawValue }

  func happen() async throws {
    if self == .stopped { try await Guest.stopDaemon() }
    try await Guest.restartDaemon()
    try await Guest.waitUntilPowered()
  }
}

extension ChildProcess {
  /// Waits until a receiver can be found.
  func isReady(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let line = await line { $0.isEvent("ready") }
    try #require(line != nil, "\(errors())", sourceLocation: sourceLocation)
  }

  /// Waits until that share of a transfer is confirmed, and returns how many octets are.
  func confirmed(percent: Int, sourceLocation: SourceLocation = #_sourceLocation) async throws -> Int {
    let line = await line { $0.isEvent("progress") && ($0.number("percent") ?? 0) >= percent }
    return try #require(line?.number("confirmed"), "\(errors())", sourceLocation: sourceLocation)
  }

  /// Runs to the end; the rest of its output, and the code, which is nil where a signal has ended it.
  func finish() async -> (lines: [String], code: Int32?) {
    let lines = await allLines()
    if case .exit(let code)? = await ending() { return (lines, code) }
    return (lines, nil)
  }
}

extension String {
  /// Whether this is the object of an event of the tool.
  func isEvent(_ name: String) -> Bool { contains("\"event\":\"\(name)\"") }

  /// The number that a member of an object has.
  func number(_ member: String) -> Int? {
    components(separatedBy: "\"\(member)\":").dropFirst().first.flatMap { Int($0.prefix { $0.isNumber }) }
  }

  /// The text that a member of an object has.
  func text(_ member: String) -> String? {
    components(separatedBy: "\"\(member)\":\"").dropFirst().first.map { String($0.prefix { $0 != "\"" }) }
  }
}
