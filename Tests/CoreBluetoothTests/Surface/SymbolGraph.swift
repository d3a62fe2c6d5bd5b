import ChildProcess
import Foundation
import TestSupport

/// What the compiler knows of the module's public symbols, read from the module that this test bundle was built with.
struct SymbolGraph: Decodable {
  struct Symbol: Decodable {
    struct Identifier: Decodable { let precise: String }
    struct Kind: Decodable { let identifier: String }
    struct Fragment: Decodable { let spelling: String }
    struct Availability: Decodable { let isUnconditionallyDeprecated: Bool? }
    struct Extension: Decodable {
      struct Constraint: Decodable { let lhs, rhs: String }
      let constraints: [Constraint]?
    }

    let identifier: Identifier
    let kind: Kind
    let pathComponents: [String]
    let accessLevel: String
    let declarationFragments: [Fragment]
    let availability: [Availability]?
    let swiftExtension: Extension?
    let spi: Bool?
  }

  struct Relationship: Decodable {
    let kind, source, target: String
    let targetFallback: String?
  }

  let symbols: [Symbol]
  let relationships: [Relationship]
}

extension SymbolGraph {
  struct Failure: Error { let words: String }

  /// The folder of the running test bundle, where the build puts everything.
  private static let products = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent()

  private static let modules = products.appending(path: "Modules")

  /// The tool of the toolchain whose `swift` is on the path.
  private static let tool: URL? = {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
    for folder in folders {
      let swift = URL(filePath: folder).appending(path: "swift").resolvingSymlinksInPath()
      let tool = swift.deletingLastPathComponent().appending(path: "swift-symbolgraph-extract")
      if FileManager.default.isExecutableFile(atPath: tool.path) { return tool }
    }
    return nil
  }()

  private static var target: String? {
    #if !canImport(Glibc)
      nil
    #elseif arch(x86_64)
      "x86_64-unknown-linux-gnu"
    #elseif arch(arm64)
      "aarch64-unknown-linux-gnu"
    #else
      nil
    #endif
  }

  /// Why the symbols cannot be read here; nil where they can.
  static let obstacle: String? = {
    if tool == nil { return "there is no swift-symbolgraph-extract beside the swift on the path" }
    if target == nil { return "the tool has no name for this platform" }
    let module = modules.appending(path: "CoreBluetooth.swiftmodule")
    if !FileManager.default.fileExists(atPath: module.path) {
      return "the build has left no \(module.path)"
    }
    return nil
  }()

  /// Reads the graphs of the module: its own symbols, and those with which it extends another module.
  static func read() async throws -> [SymbolGraph] {
    guard let tool, let target else { throw Failure(words: obstacle ?? "") }
    let files = FileManager.default
    let folder = TemporaryFolder()
    let output = URL(filePath: folder.path)
    defer { withExtendedLifetime(folder) {} }
    let flags = try await systemFlags()
    let maps = try moduleMaps().flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
    _ = try await run(
      tool.path,
      [
        "-module-name", "CoreBluetooth", "-I", modules.path, "-target", target, "-output-dir", output.path,
        "-minimum-access-level", "public", "-include-spi-symbols", "-skip-synthesized-members",
      ] + maps + flags.flatMap { ["-Xcc", $0] })
    return try files.contentsOfDirectory(at: output, includingPropertiesForKeys: nil)
      .sorted { $0.path < $1.path }
      .map { try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: $0)) }
  }

  /// Module maps of the package's C targets, which the build generates, and of its system libraries.
  private static func moduleMaps() throws -> [String] {
    let (generated, written) = (products, SurfaceTable.root.appending(path: "Sources"))
    return try [generated, written].flatMap { folder in
      try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        .filter { folder == written || $0.pathExtension == "build" }
        .map { $0.appending(path: "module.modulemap").path }
        .filter { FileManager.default.fileExists(atPath: $0) }
        .sorted()
    }
  }

  /// Where the headers of the system libraries are, by pkg-config, as the build asks for them.
  private static func systemFlags() async throws -> [String] {
    let manifest = try String(
      contentsOf: SurfaceTable.root.appending(path: "Package.swift"), encoding: .utf8)
    var flags: [String] = []
    for match in manifest.matches(of: /pkgConfig: "([^"]+)"/) {
      let lines = try await run("/usr/bin/env", ["pkg-config", "--cflags-only-I", String(match.output.1)])
      flags += lines.flatMap { $0.split(whereSeparator: \.isWhitespace).map(String.init) }
    }
    return flags
  }

  /// The lines that a tool says.
  private static func run(_ tool: String, _ arguments: [String]) async throws -> [String] {
    let process = try ChildProcess(tool, arguments)
    let lines = await process.allLines()
    guard await process.ending() == .exit(0) else {
      throw Failure(words: "\(tool) \(arguments): \(process.errors())")
    }
    return lines
  }
}
