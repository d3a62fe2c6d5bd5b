internal import CAllocations
internal import VirtualRadio

extension Benchmark {
  /// The link model alone: no hosts, no queues of programs, no engine.
  static let linkModel = [
    // Full events, as in a transfer.
    Benchmark(name: "link model full") {
      try measure("link model full", LinkParameters(packetErrorRate: 0), seconds: 600)
    },
    // One exchange in each: what an event costs by itself.
    Benchmark(name: "link model single") {
      try measure("link model single", LinkParameters(packetsPerEvent: 1), seconds: 6000)
    },
    Benchmark(name: "link model lossy") {
      try measure("link model lossy", LinkParameters(packetErrorRate: 0.05), seconds: 600)
    },
  ]

  private static func measure(
    _ name: String, _ parameters: LinkParameters, seconds: Int
  ) throws -> [Measurement] {
    let end = Duration.seconds(seconds)
    let events = end / parameters.connectionInterval
    var packets = 0
    var allocations = 0
    func run() throws {
      var trial = LinkTrial(parameters, unit: [parameters.attMTU + 4])
      let before = allocations_count()
      trial.run(until: end)
      allocations = Int(allocations_count() - before)
      packets = trial.usage(at: end).packets
      guard !trial.hasEnded, packets > 0 else { throw BenchmarkError("the link was lost") }
    }
    var best = Double.infinity
    for _ in 0..<5 { best = min(best, try cpuSeconds(run)) }
    return [
      Measurement("\(name) events", events / best, "events/s of one core"),
      Measurement("\(name) packets", Double(packets) / best, "packets/s of one core"),
      Measurement("\(name) allocations", Double(allocations) / Double(packets), "a packet"),
      Measurement("\(name) time", Double(seconds) / best, "times as fast as time"),
    ]
  }
}
