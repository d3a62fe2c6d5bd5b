extension Guest {
  /// Runs `body` while what some adapters advertise is heard about once a second: ``repeatAdvertising(of:_:)``.
  package static func repeatingAdvertising<Result: Sendable>(
    of adapters: [String], while body: () async throws -> Result
  ) async throws -> Result {
    let result: Swift.Result<Result, any Error>
    do {
      for adapter in adapters { try await repeatAdvertising(of: adapter) }
      result = .success(try await body())
    } catch { result = .failure(error) }
    for adapter in adapters { try await repeatAdvertising(of: adapter, false) }
    return try result.get()
  }

  /// Makes a link between two adapters without bluetoothd.
  package static func link(_ central: String, to peripheral: Int) async throws {
    // LE Set Advertising Enable (Core Vol 4 Part E 7.8.9).
    try await Command("/usr/bin/hcitool", ["-i", "hci\(peripheral)", "cmd", "0x08", "0x000a", "01"]).run()
    try await Command("/usr/bin/hcitool", ["-i", central, "lecc", address(of: peripheral)]).run()
  }
}
