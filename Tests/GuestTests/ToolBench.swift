import ChildProcess
import Foundation
import RealStack
import Testing

/// A sender on hci0 and a receiver on hci1, both the built tool, and a folder for all that they keep.
final class ToolBench: Sendable {
  static let address = Guest.address(of: 1)

  let folder: String
  let image: Data

  init(size: Int) throws {
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

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  var received: Data? { try? Data(contentsOf: URL(filePath: "\(folder)/in/fw.bin")) }

  /// Starts the tool.
  func tool(_ arguments: [String]) throws -> ChildProcess {
    try ChildProcess(
      "bluehaul", arguments, environment: ["XDG_STATE_HOME": "\(folder)/state"], endsWithParent: true)
  }

  /// A receiver that advertises.
  func receiver(_ options: String..., sourceLocation: SourceLocation = #_sourceLocation) async throws
    -> ChildProcess
  {
    let receiver = try tool(
      ["receive", "--json", "--radio", "bluez:hci1", "--name", "bench-1", "--into", "\(folder)/in"] + options)
    #expect(
      await receiver.line { $0.contains("\"ready\"") } != nil, "\(receiver.errors())",
      sourceLocation: sourceLocation)
    return receiver
  }

  func push(via carrier: String, _ options: String...) throws -> ChildProcess {
    try tool(
      ["push", "\(folder)/fw.bin", "--json", "--radio", "bluez:hci0", "--to", Self.address, "--via", carrier]
        + options)
  }

  /// Ends a receiver as Ctrl-C does.
  func stop(_ receiver: ChildProcess, sourceLocation: SourceLocation = #_sourceLocation) async {
    receiver.send(signal: SIGINT)
    #expect(await receiver.ending() == .exit(130), "\(receiver.errors())", sourceLocation: sourceLocation)
  }
}

extension ChildProcess {
  /// Runs to the end; the code, or nil where a signal has ended it.
  func code() async -> Int32? {
    _ = await allLines()
    if case .exit(let code)? = await ending() { return code }
    return nil
  }
}
