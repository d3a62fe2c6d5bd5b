import ChildProcess
import Foundation
import Testing

/// The unit files beside the samples: what a service manager would make of them.
@Suite(.timeLimit(.minutes(30))) struct UnitFileTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  private static let folder = root.appending(path: "samples/systemd")
  static let names = ["restoring-central", "restoring-peripheral"]
  private static let analyser = "/usr/bin/systemd-analyze"

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  private static func unit(_ name: String) throws -> UnitFile {
    try UnitFile(text("samples/systemd/\(name).service"))
  }

  /// A home with the programs where the unit files look for them.
  private static func home(in air: SampleAir) throws -> URL {
    let home = air.folder.appending(path: "home")
    let programs = home.appending(path: ".local/bin")
    try FileManager.default.createDirectory(at: programs, withIntermediateDirectories: true)
    for name in names {
      try FileManager.default.createSymbolicLink(
        at: programs.appending(path: "sample-\(name)"),
        withDestinationURL: ChildProcess.products.appending(path: "sample-\(name)"))
    }
    return home
  }

  /// Replaces the specifiers of a user's service manager (systemd.unit(5)).
  private static func expanded(_ text: String, home: URL, runtime: URL) -> String {
    text.replacing("%h", with: home.path).replacing("%t", with: runtime.path)
  }

  @Test func thePageNamesThemAll() throws {
    let there = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
    #expect(there.sorted() == Self.names.map { "\($0).service" }.sorted())
    let page = try Self.text("docs/restoration.md")
    for file in there { #expect(page.contains(file)) }
    // As do the commands that put the program where the file looks for it.
    for name in Self.names {
      let command = try #require(Self.unit(name).value("Service", "ExecStart"))
      #expect(command == "%h/.local/bin/sample-\(name)")
    }
    #expect(page.contains("install -Dt ~/.local/bin .build/release/sample-restoring-central"))
  }

  @Test(arguments: names)
  func aKilledProgramIsStartedAgainAndOneThatHasForgottenIsNot(name: String) throws {
    let unit = try Self.unit(name)
    #expect(Set(unit.sections.keys) == ["Unit", "Service", "Install"])
    #expect(unit.value("Unit", "Description")?.isEmpty == false)
    // on-failure: after a signal, a crash and an exit code, not after success (systemd.service(5)).
    #expect(unit.value("Service", "Restart") == "on-failure")
    #expect(unit.value("Service", "RestartSec") == "1s")
    #expect(try Self.text("docs/restoration.md").contains("is started again after a second"))
    // However often: else the manager gives up after a few ends in a short time.
    #expect(unit.value("Unit", "StartLimitIntervalSec") == "0")
    // At the start of the user's manager, which lingering makes that of the machine.
    #expect(unit.value("Install", "WantedBy") == "default.target")
  }

  @Test(arguments: names)
  func theEnvironmentIsWhatThePagesName(name: String) throws {
    let variables = try Self.unit(name).variables
    #expect(variables.map(\.name) == ["COREBLUETOOTH_RADIO"])
    let page = try Self.text("docs/corebluetooth.md")
    for variable in variables { #expect(page.contains("`\(variable.name)`")) }
  }

  /// The command and the environment of the unit file, as its manager would start them.
  @Test(arguments: [("restoring-central", "scanning"), ("restoring-peripheral", "advertising")])
  func theProgramStartsAsItSays(name: String, line: String) async throws {
    let air = SampleAir()
    let home = try Self.home(in: air)
    let unit = try Self.unit(name)
    let command = try #require(unit.value("Service", "ExecStart")).split(separator: " ").map {
      Self.expanded(String($0), home: home, runtime: air.folder)
    }
    var environment = ["HOME": home.path, "XDG_STATE_HOME": ""]
    for variable in unit.variables {
      environment[variable.name] = Self.expanded(variable.value, home: home, runtime: air.folder)
    }
    let process = try await air.start(
      program: try #require(command.first), Array(command.dropFirst()), environment: environment)
    #expect(await process.line { _ in true } == line, "\(process.errors())")
    process.send(signal: SIGKILL)
    #expect(await process.ending() == .signal(SIGKILL))
    // Its state is where a user's services keep theirs.
    let state = home.appending(path: ".local/state/CoreBluetooth/sample-\(name)")
    #expect(FileManager.default.fileExists(atPath: state.path))
  }

  @Test(
    "systemd itself has nothing to say against them",
    .enabled(if: FileManager.default.isExecutableFile(atPath: analyser), "systemd-analyze is not installed"),
    arguments: names)
  func isVerified(name: String) async throws {
    let air = SampleAir()
    let home = try Self.home(in: air)
    let check = try ChildProcess(
      Self.analyser,
      ["verify", "--user", "--man=no", Self.folder.appending(path: "\(name).service").path],
      environment: ["HOME": home.path, "XDG_RUNTIME_DIR": air.folder.path])
    #expect(await check.ending() == .exit(0))
    #expect(check.errors() == "")
  }

  @Test func theSyntaxIsThatOfSystemd() throws {
    let unit = try UnitFile(
      "; Environment=A=1\n[Service]\nExecStart=/bin/a \\\n# between\n  b\nEnvironment=B=2 C=3\nEnvironment=D=x=y\n"
    )
    #expect(unit.value("Service", "ExecStart") == "/bin/a  b")
    #expect(unit.value("Service", "Environment") == nil)
    #expect(unit.variables.map { "\($0.name) \($0.value)" } == ["B 2", "C 3", "D x=y", "A 1"])
    for text in ["Key=1\n", "[Unit]\nno assignment\n", "[Unit]\nA=b\\"] {
      #expect(throws: UnitFile.Fault.self) { try UnitFile(text) }
    }
  }
}
