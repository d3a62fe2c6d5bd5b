internal import Glibc

/// The processor time that a piece of work takes, in seconds, of all threads.
func cpuSeconds(_ work: () throws -> Void) rethrows -> Double {
  let start = processorTime()
  try work()
  return processorTime() - start
}

/// The same for work that waits.
func cpuSeconds(_ work: () async throws -> Void) async rethrows -> Double {
  let start = processorTime()
  try await work()
  return processorTime() - start
}

/// The processor times of two pieces of work, each the least of many, taken in turns: what else the machine does meets both, and not the least of them. Best of some
/// milliseconds each.
func ratioOfTimes(_ one: () throws -> Void, to other: () throws -> Void) rethrows -> (Double, Double) {
  var best = (Double.infinity, Double.infinity)
  for _ in 0..<15 {
    best.0 = min(best.0, try cpuSeconds(one))
    best.1 = min(best.1, try cpuSeconds(other))
  }
  return best
}

private func processorTime() -> Double { Double(clock()) / 1_000_000 }
