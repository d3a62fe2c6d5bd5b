import BlueZRadio
import BulkTransfer
import DBus
import Foundation
import Locking
import Testing

@testable import BluehaulTool

/// The choice of this host's own radio. No test here may touch a bus that is there.
@Suite struct HostRadioTests {
  private static let problem = Finding("bluetoothd", .problem, "it does not run", advice: "start it")
  private static let note = Finding("version", .note, "an old one")
  private static let good = Finding("adapter", .good, "hci0 is on")

  private func doctor(_ findings: [Finding], _ options: String...) async -> ToolRun {
    await ToolRun(["doctor"] + options, examine: { _ in findings })
  }

  @Test func theDoctorTellsEachFindingAndEndsWellWithoutAProblem() async throws {
    let run = await doctor([Self.good, Self.note])
    #expect(run.code == .success && run.errors.isEmpty)
    #expect(run.lines.count == 2 && run.output.contains("hci0 is on") && run.output.contains("an old one"))
    try Documentation.check(await doctor([Self.good, Self.problem], "--json").lines.dropLast())
  }

  @Test func aProblemIsTheExitCodeAndHasItsAdvice() async {
    let run = await doctor([Self.good, Self.problem])
    #expect(run.code == .notFound)
    #expect(run.output.contains("PROBLEM bluetoothd: it does not run") && run.output.contains("start it"))
    #expect(run.errors.contains("one thing has to be mended"))
  }

  @Test(arguments: [["--adapter", "hci7"], []])
  func theDoctorIsAskedAboutTheAdapterThatIsMeant(options: [String]) async {
    let run = await ToolRun(["doctor"] + options, examine: { [Finding("adapter", .good, $0 ?? "any")] })
    #expect(run.output.contains(options.last ?? "any"))
  }

  @Test(arguments: ["x", "", "hci", "hci01", "hci99999", "HCI0"])
  func theDoctorIsAskedAboutNothingElse(adapter: String) async {
    let run = await ToolRun(["doctor", "--adapter", adapter], examine: { _ in [Self.good] })
    #expect(run.code == .usage && run.errors.contains("hci0") && run.output.isEmpty, "\(run.errors)")
  }

  @Test(
    arguments: [
      ["--link", "mtu=100"], ["--fault", "drop@40%"], ["--capture", "x.btsnoop"],
    ])
  func optionsOfASimulatedLinkAreRefusedOnARealOne(options: [String]) async throws {
    let bench = try Bench()
    let file = try bench.file("fw.bin", size: 1000)
    for radio in ["bluez", "bluez:hci1"] {
      let run = await bench.run(["push", file, "--to", "x", "--radio", radio] + options)
      #expect(run.code == .usage && run.errors.contains(options[0]), "\(run.errors)")
    }
  }

  @Test(arguments: ["bluez:", "bluez:eth0", "bluez:hci", "bluez:hci01", "bluez:hci99999"])
  func wordsForNoAdapterAreAnError(words: String) async throws {
    let bench = try Bench()
    let run = await ToolRun(["scan", "--radio", words], variables: ["XDG_STATE_HOME": bench.folder])
    #expect(run.code == .usage && run.errors.contains("hci0"), "\(run.errors)")
    let doctor = await ToolRun(["doctor", "--adapter", String(words.dropFirst(6))], examine: { _ in [] })
    #expect(doctor.code == run.code, "one kind of mistake, one code")
  }

  @Test func theRadioThatNobodyChoseIsTheHosts() async throws {
    let bench = try Bench()
    let words = try await #require(bench.wordsOfChosenRadio([:]))
    #expect(words == "bluez")
    #expect(try await bench.wordsOfChosenRadio(["COREBLUETOOTH_RADIO": "virtual:x"]) == "virtual:x")
  }

  @Test func anAddressStandsForTheDevicesThatCanHaveIt() throws {
    let radio = try BlueZRadio(bus: .address("unix:path=/nonexistent/bus"))
    let target = try TransferManifest.Target(name: "00:aa:01:01:00:01")
    let identifiers = BlueZRadio.identifiers(ofAddress: "00:AA:01:01:00:01")
    #expect(identifiers.count == 2)
    #expect(target.linkTarget(on: radio) == .oneOf(identifiers, called: "00:AA:01:01:00:01"))
    #expect(identifiers.allSatisfy { BlueZRadio.address(of: $0) == "00:AA:01:01:00:01" })
    #expect(try TransferManifest.Target(name: "bench-1").linkTarget(on: radio) == .name("bench-1"))
  }
}

extension Bench {
  /// The words of the radio that a scan asks for, where the command line names none.
  fileprivate func wordsOfChosenRadio(_ variables: [String: String]) async throws -> String? {
    struct Asked: Error {}
    let words = Words()
    _ = await ToolRun(["scan"], variables: variables.merging(["XDG_STATE_HOME": folder]) { $1 }) { request in
      words.set(request.words)
      throw Asked()
    }
    return words.value
  }
}

/// Remembers a text, from any thread.
private final class Words: Sendable {
  private let state = PosixMutex<String?>(nil)
  var value: String? { state.withLock { $0 } }
  func set(_ text: String) { state.withLock { $0 = text } }
}
