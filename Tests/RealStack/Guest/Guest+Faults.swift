/// What can happen to a Bluetooth stack. Each returns when it has happened; each throws outside of the virtual machine.
///
/// Tests of a boot run one after the other. Each leaves the stack as it found it, with all adapters powered.
extension Guest {
  // MARK: The daemon

  /// Kills bluetoothd and starts it; returns when it answers. Its links have ended, and what programs had registered with it is gone.
  package static func restartDaemon() async throws { try await stack("daemon", "restart") }

  /// Ends bluetoothd as systemd does it, by SIGTERM.
  package static func stopDaemon() async throws { try await stack("daemon", "stop") }

  package static func killDaemon() async throws { try await stack("daemon", "kill") }

  /// Returns when it answers.
  package static func startDaemon() async throws { try await stack("daemon", "start") }

  /// Has bluetoothd started again whenever it ends by itself, as a manager of services does. 5.66 ends where a link of two of its own adapters
  /// does at a bad moment.
  package static func keepDaemon() async throws { try await stack("daemon", "keep") }

  /// Restarts bluetoothd with another ATT MTU, 23 to 517, that it asks for and grants.
  package static func restartDaemon(mtu: Int) async throws { try await stack("mtu", "\(mtu)") }

  // MARK: The controllers

  /// Takes all controllers away, as if a hub was unplugged.
  package static func stopAir() async throws { try await stack("air", "stop") }

  /// Returns before bluetoothd has found the controllers: ``waitUntilPowered(_:limit:)``.
  package static func startAir(controllers: Int = 2) async throws {
    try await stack("air", "start", "\(controllers)")
  }

  /// Asks bluetoothd to switch an adapter, such as hci1, on or off.
  package static func setPowered(_ adapter: String, _ isOn: Bool) async throws {
    try await stack("power", adapter, isOn ? "on" : "off")
  }

  /// Stops an adapter without bluetoothd. The other side of its links hears nothing of it.
  package static func takeDown(_ adapter: String) async throws { try await stack("down", adapter) }

  package static func bringUp(_ adapter: String) async throws { try await stack("up", adapter) }

  /// Waits until so many adapters are powered.
  package static func waitUntilPowered(_ adapters: Int = 2, limit: Duration = .seconds(60)) async throws {
    try await stack("wait-powered", "\(adapters)", "\(limit.components.seconds)", limit: limit + .seconds(60))
  }

  /// Has what an adapter advertises heard about once a second, as on a real air. The controllers of the machine tell a scanner of each
  /// advertiser only once, perhaps before it listens.
  package static func repeatAdvertising(of adapter: String, _ isOn: Bool = true) async throws {
    try await stack("repeat", adapter, isOn ? "on" : "off")
  }

  // MARK: Links

  /// Ends the link of an adapter to a peer; returns when the controller has said so.
  package static func disconnect(_ adapter: String, from address: String) async throws {
    try await stack("disconnect", adapter, address)
  }

  /// The address of an adapter of btvirt.
  package static func address(of adapter: Int) -> String {
    let number = String(adapter, radix: 16)
    let octet = String(repeating: "0", count: max(0, 2 - number.count)) + number
    return "00:AA:01:\(octet.uppercased()):00:\(octet.uppercased())"
  }

  private static func stack(_ words: String..., limit: Duration = .seconds(120)) async throws {
    guard isHere else {
      throw Command.Failure(description: "stack \(words.joined(separator: " ")) \(elsewhere)")
    }
    try await Command("/run/real-stack/bin/stack", words).run(limit: limit)
  }
}
