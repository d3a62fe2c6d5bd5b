import Testing

@testable import BlueZRadio

@Suite("What is found on a host")
struct DiagnosisTests {
  /// A host on which all is well.
  static let good: SystemFacts = {
    var facts = SystemFacts()
    facts.kernel = "6.12.117-amd64"
    facts.kernelAdapters = ["hci0"]
    facts.daemonVersion = DaemonVersion(5, 72)
    facts.adapters = [
      .init(name: "hci0", address: "00:AA:01:00:00:00", isPowered: true, roles: ["central", "peripheral"])
    ]
    return facts
  }()

  static func changed(_ change: (inout SystemFacts) -> Void) -> SystemFacts {
    var facts = good
    change(&facts)
    return facts
  }

  @Test("a host on which all is well has nothing to mend")
  func allWell() {
    let findings = Diagnosis(facts: Self.good, wanted: nil).findings
    #expect(findings.allSatisfy { $0.level == .good && $0.advice == nil })
    #expect(Set(findings.map(\.check)).isSuperset(of: ["kernel", "bluetoothd", "version", "adapter"]))
  }

  struct Fault: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let facts: SystemFacts
    var wanted: String?
    let level: Finding.Level
    /// What the message or the advice must tell.
    let words: [String]

    init(
      _ name: String, _ level: Finding.Level, _ words: [String], wanted: String? = nil,
      _ change: (inout SystemFacts) -> Void
    ) {
      testDescription = name
      facts = DiagnosisTests.changed(change)
      self.level = level
      self.words = words
      self.wanted = wanted
    }
  }

  static let faults = [
    Fault("no subsystem", .problem, ["modprobe bluetooth"]) { $0.hasSubsystem = false },
    Fault("a kernel that locks up", .note, ["6.1.0-51-amd64", "6.12"]) { $0.kernel = "6.1.0-51-amd64" },
    Fault("no bus", .problem, ["No such file", "dbus"]) { $0.daemon = .noBus("No such file") },
    Fault("no daemon", .problem, ["systemctl enable --now bluetooth"]) {
      $0.daemon = .notRunning("no owner")
    },
    Fault("no permission", .problem, ["group bluetooth"]) { $0.daemon = .notPermitted("policy") },
    Fault("a daemon of another kind", .problem, ["systemctl restart bluetooth"]) {
      $0.daemon = .unusable("x")
    },
    Fault("a daemon that is too old", .problem, ["5.50", "5.62"]) { $0.daemonVersion = DaemonVersion(5, 50) },
    Fault("a daemon without MTU", .note, ["ATT MTU"]) { $0.daemonVersion = DaemonVersion(5, 61) },
    Fault("a daemon that drops long commands", .note, ["510"]) { $0.daemonVersion = DaemonVersion(5, 66) },
    Fault("an unknown version", .note, ["not known"]) { $0.daemonVersion = nil },
    Fault("no adapter at all", .problem, ["plug one in", "virtual:DIR"]) {
      $0.adapters = []
      $0.kernelAdapters = []
    },
    Fault("an adapter that only the kernel has", .problem, ["hci0", "journalctl -u bluetooth"]) {
      $0.adapters = []
    },
    Fault("an adapter that is off", .problem, ["hci0", "power on"]) { $0.adapters[0].isPowered = false },
    Fault("a soft block", .problem, ["rfkill unblock bluetooth"]) {
      $0.adapters[0].isPowered = false
      $0.blocks = [.init(isSoft: true, isHard: false)]
    },
    Fault("a hard block", .problem, ["switch"]) {
      $0.adapters = []
      $0.blocks = [.init(isSoft: true, isHard: true)]
    },
    Fault("another adapter than wanted", .problem, ["hci3", "choose one of hci0"], wanted: "hci3") { _ in },
    Fault("an adapter that cannot be a device", .note, ["cannot be a device"]) {
      $0.adapters[0].roles = ["central"]
    },
    Fault("an adapter that cannot connect", .problem, ["cannot connect to devices"]) {
      $0.adapters[0].roles = ["peripheral"]
    },
    Fault("no room to advertise", .note, ["no room"]) { $0.adapters[0].advertisementsLeft = 0 },
    Fault("bearers that hang", .note, ["Channels = 1"]) {
      $0.hasEnhancedCredits = true
      $0.daemonVersion = DaemonVersion(5, 66)
      $0.adapters.append(.init(name: "hci1", address: "00:AA:01:01:00:01", isPowered: true))
    },
  ]

  @Test("each fault is told with what mends it", arguments: faults)
  func fault(_ fault: Fault) {
    let findings = Diagnosis(facts: fault.facts, wanted: fault.wanted).findings
    let matching = findings.filter { finding in
      let text = finding.message + " " + (finding.advice ?? "")
      return finding.level == fault.level && fault.words.allSatisfy { text.contains($0) }
    }
    #expect(matching.count == 1, "\(findings)")
    if fault.level == .problem { #expect(matching.first?.advice != nil) }
  }

  @Test("an adapter that is off does no harm where another is on and none was asked for")
  func secondAdapter() {
    let facts = Self.changed {
      $0.adapters.append(.init(name: "hci1", address: "00:AA:01:01:00:01", isPowered: false))
    }
    #expect(!Diagnosis(facts: facts, wanted: nil).findings.contains { $0.level == .problem })
    #expect(Diagnosis(facts: facts, wanted: "hci1").findings.contains { $0.level == .problem })
  }

  @Test("the interval that the kernel asks for is told in milliseconds")
  func intervals() throws {
    let facts = Self.changed { $0.intervals = ["hci0": 6...25] }
    let speed = try #require(Diagnosis(facts: facts, wanted: nil).findings.first { $0.check == "speed" })
    #expect(speed.message.contains("7.5 to 31.25 ms"))
  }

  @Test(
    "versions are read and ordered as numbers",
    arguments: [
      ("5.66", DaemonVersion(5, 66)), ("5.9-beta", DaemonVersion(5, 9)), ("x", nil), ("5.", nil), ("", nil),
    ])
  func versions(text: String, version: DaemonVersion?) {
    #expect(DaemonVersion(text) == version)
    #expect(DaemonVersion(5, 9) < DaemonVersion(5, 66))
  }
}
