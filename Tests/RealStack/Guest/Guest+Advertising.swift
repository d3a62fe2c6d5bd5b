extension Guest {
  /// Runs `body` while the advertising of some adapters is switched off and on again, each second and behind everybody's back.
  ///
  /// The controllers tell a scanner of each advertiser once, as scanning or advertising begins, and perhaps before the kernel listens. Real ones
  /// tell of it several times a second.
  package static func repeatingAdvertising<Result: Sendable>(
    of adapters: [String], while body: () async throws -> Result
  ) async throws -> Result {
    let repeating = Task {
      while !Task.isCancelled {
        // Whole, so that advertising is never left switched off.
        await Task { for adapter in adapters { await advertiseAgain(adapter) } }.value
        try? await Task.sleep(for: .seconds(1))
      }
    }
    do {
      let result = try await body()
      repeating.cancel()
      await repeating.value
      return result
    } catch {
      repeating.cancel()
      await repeating.value
      throw error
    }
  }

  /// Makes a link between two adapters without bluetoothd.
  package static func link(_ central: String, to peripheral: Int) async throws {
    try await setAdvertising("hci\(peripheral)", "01")
    try await Command("/usr/bin/hcitool", ["-i", central, "lecc", address(of: peripheral)]).run()
  }

  private static func advertiseAgain(_ adapter: String) async {
    // An adapter that is off now may be on the next time.
    for isOn in ["00", "01"] { try? await setAdvertising(adapter, isOn) }
  }

  /// LE Set Advertising Enable (Core Vol 4 Part E 7.8.9).
  private static func setAdvertising(_ adapter: String, _ isOn: String) async throws {
    try await Command("/usr/bin/hcitool", ["-i", adapter, "cmd", "0x08", "0x000a", isOn]).run()
  }
}
