/// Says of a host's facts what is good, what limits, and what has to be mended. Decides only; looks at nothing itself.
struct Diagnosis {
  let facts: SystemFacts
  /// The adapter that is meant, such as `hci1`; nil: any.
  let wanted: String?

  /// The findings, from the ground up.
  var findings: [Finding] { [kernel, daemon, version] + adapters + enhancedCredits + intervals }

  private var kernel: Finding {
    guard facts.hasSubsystem else {
      return Finding(
        "kernel", .problem, "the kernel \(facts.kernel) has no Bluetooth loaded",
        advice: "load it as root with modprobe bluetooth, or use a kernel that has it")
    }
    if let build = debianBuild, (47...57).contains(build) {
      return Finding(
        "kernel", .note,
        "the kernel \(facts.kernel) is one of those that can lock up or end bluetoothd when a channel closes",
        advice: "start a newer one, such as linux-image-6.12-amd64 of bookworm-security")
    }
    return Finding("kernel", .good, "the kernel \(facts.kernel) has Bluetooth")
  }

  /// N of Debian's kernels 6.1.0-N.
  private var debianBuild: Int? {
    guard facts.kernel.hasPrefix("6.1.0-") else { return nil }
    return Int(facts.kernel.dropFirst(6).prefix(while: \.isNumber))
  }

  private var daemon: Finding {
    switch facts.daemon {
    case .noBus(let why):
      Finding(
        "system bus", .problem, "the system bus cannot be reached: \(why)",
        advice: "start it, mostly with systemctl start dbus; in a container, mount /run/dbus")
    case .notRunning(let why):
      Finding(
        "bluetoothd", .problem, "bluetoothd does not run: \(why)",
        advice: "install the package bluez, then systemctl enable --now bluetooth")
    case .notPermitted(let why):
      Finding(
        "permission", .problem, "this user may not talk to bluetoothd: \(why)",
        advice: "become a member of the group bluetooth, or allow it in /etc/dbus-1/system.d")
    case .unusable(let why):
      Finding(
        "bluetoothd", .problem, "bluetoothd answers otherwise than expected: \(why)",
        advice: "restart it with systemctl restart bluetooth")
    case .answers: Finding("bluetoothd", .good, "bluetoothd runs, and this user may use it")
    }
  }

  private var version: Finding {
    guard let version = facts.daemonVersion else {
      return Finding("version", .note, "the version of bluetoothd is not known")
    }
    if version < DaemonVersion(5, 51) {
      return Finding(
        "version", .problem, "bluetoothd \(version) cannot write without response as it should",
        advice: "install BlueZ 5.62 or later")
    }
    if version < DaemonVersion(5, 62) {
      return Finding(
        "version", .note, "bluetoothd \(version) does not tell the ATT MTU before data flows",
        advice: "install BlueZ 5.62 or later")
    }
    if version <= DaemonVersion(5, 66) {
      return Finding(
        "version", .note,
        "bluetoothd \(version), as a peripheral, drops writes without response of more than 510 octets of other centrals"
      )
    }
    return Finding("version", .good, "bluetoothd \(version)")
  }

  // MARK: Adapters

  private var adapters: [Finding] {
    guard case .answers = facts.daemon else { return [] }
    if let wanted, !facts.adapters.contains(where: { $0.name == wanted }) {
      let there = facts.adapters.map(\.name).joined(separator: ", ")
      return [
        Finding(
          "adapter", .problem, "there is no adapter \(wanted)",
          advice: there.isEmpty ? "plug it in; dmesg tells why a driver fails" : "choose one of \(there)")
      ]
    }
    guard !facts.adapters.isEmpty else { return [noAdapter] }
    return facts.adapters.filter { wanted == nil || $0.name == wanted }.flatMap { power($0) + roles($0) }
  }

  private var noAdapter: Finding {
    if let blocked { return blocked }
    if facts.kernelAdapters.isEmpty {
      return Finding(
        "adapter", .problem, "there is no Bluetooth adapter",
        advice:
          "plug one in; dmesg tells why a driver or its firmware fails; without one, --radio virtual:DIR simulates"
      )
    }
    let names = facts.kernelAdapters.joined(separator: ", ")
    return Finding(
      "adapter", .problem, "the kernel has \(names), but bluetoothd does not use it",
      advice: "restart bluetoothd, and see its journal with journalctl -u bluetooth")
  }

  /// A block explains an adapter that is off, or not there.
  private var blocked: Finding? {
    if facts.blocks.contains(where: \.isHard) {
      return Finding(
        "adapter", .problem, "Bluetooth is switched off by a switch of this machine",
        advice: "use the switch or the function key, then rfkill list")
    }
    if facts.blocks.contains(where: \.isSoft) {
      return Finding(
        "adapter", .problem, "Bluetooth is switched off by software",
        advice: "switch it on with rfkill unblock bluetooth")
    }
    return nil
  }

  private func power(_ adapter: SystemFacts.Adapter) -> [Finding] {
    let name = "\(adapter.name) (\(adapter.address))"
    if adapter.isPowered { return [Finding("adapter", .good, "\(name) is on")] }
    // One adapter that is off does no harm where another is on and none was asked for.
    let level: Finding.Level =
      wanted == nil && facts.adapters.contains(where: \.isPowered) ? .note : .problem
    if level == .problem, let blocked { return [blocked] }
    return [
      Finding(
        "adapter", level, "\(name) is off",
        advice: "switch it on with bluetoothctl power on, or for good with AutoEnable=true in main.conf")
    ]
  }

  private func roles(_ adapter: SystemFacts.Adapter) -> [Finding] {
    var findings: [Finding] = []
    for (role, what) in [("central", "connect to devices"), ("peripheral", "be a device")] {
      guard let roles = adapter.roles, !roles.contains(role) else { continue }
      findings.append(
        Finding(
          "adapter", role == "central" ? .problem : .note, "\(adapter.name) cannot \(what)",
          advice: "use an adapter for Bluetooth LE 4.1 or later"))
    }
    if adapter.advertisementsLeft == 0 {
      findings.append(
        Finding(
          "adapter", .note, "\(adapter.name) has no room for another advertisement",
          advice: "end a program that advertises"))
    }
    return findings
  }

  // MARK: Limits

  private var enhancedCredits: [Finding] {
    guard facts.hasEnhancedCredits == true, facts.adapters.count > 1,
      let version = facts.daemonVersion, version <= DaemonVersion(5, 66)
    else { return [] }
    return [
      Finding(
        "kernel", .note,
        "with enhanced credit based channels, links between two adapters of this host can hang",
        advice: "set Channels = 1 under [GATT] in /etc/bluetooth/main.conf")
    ]
  }

  private var intervals: [Finding] {
    facts.intervals.sorted { $0.key < $1.key }.compactMap { name, units in
      guard wanted == nil || wanted == name else { return nil }
      let range = "\(Self.milliseconds(units.lowerBound)) to \(Self.milliseconds(units.upperBound)) ms"
      return Finding("speed", .good, "\(name) asks for a connection interval of \(range)")
    }
  }

  private static func milliseconds(_ units: Int) -> String {
    let quarters = units * 5
    return quarters % 4 == 0 ? String(quarters / 4) : String(Double(quarters) / 4)
  }
}
