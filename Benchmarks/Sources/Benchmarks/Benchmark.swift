/// Something that is measured; it may give several figures.
struct Benchmark: Sendable {
  let name: String
  /// Runs only where it is named.
  var isOnDemand = false
  let run: @Sendable () async throws -> [Measurement]
}

/// One figure.
struct Measurement: Hashable, Sendable {
  let name: String
  let value: Double
  let unit: String

  init(_ name: String, _ value: Double, _ unit: String) {
    self.name = name
    self.value = value
    self.unit = unit
  }
}
