import Testing

@testable import VirtualRadio

@Suite("Frame budget") struct FrameBudgetTests {
  @Test(
    "without a stated depth the queue holds two events' worth, and at least eight frames",
    arguments: [
      (LinkParameters(attMTU: 247, connectionInterval: .milliseconds(30)), 251, 44),
      (LinkParameters(attMTU: 247, connectionInterval: .microseconds(7500)), 251, 11),
      (LinkParameters(attMTU: 247, connectionInterval: .milliseconds(30), packetsPerEvent: 1), 251, 8),
      (LinkParameters(attMTU: 247, connectionInterval: .milliseconds(30), packetsPerEvent: 10), 251, 20),
      (LinkParameters(phy: .codedS8, attMTU: 247, connectionInterval: .milliseconds(30)), 251, 8),
    ])
  func automaticDepth(_ parameters: LinkParameters, _ octets: Int, _ frames: Int) {
    var budget = FrameBudget(parameters)
    while budget.hasRoom { budget.add(octets: octets) }
    #expect(budget.frames == frames)
    budget.remove(octets: octets)
    #expect(budget.hasRoom)
  }

  @Test("a stated depth is kept", arguments: [1, 2, 5, 100])
  func statedDepth(_ depth: Int) {
    var link = LinkLayer(
      parameters: LinkParameters(queueDepth: depth), generator: SeededGenerator(seed: 1), now: .zero)
    var frames = 0
    while link.hasRoom(.central), link.enqueue([1, 2, 3, 4], from: .central, now: .zero) { frames += 1 }
    #expect(frames == depth)
    #expect(link.queuedFrames(.central) == depth)
    #expect(link.hasRoom(.peripheral))
  }

  @Test("even what does not wait for room is bounded", arguments: [nil, 1, 50])
  func overrun(_ depth: Int?) {
    var link = LinkLayer(
      parameters: LinkParameters(queueDepth: depth), generator: SeededGenerator(seed: 1), now: .zero)
    var frames = 0
    while frames < 1_000_000, link.enqueue([1, 2, 3, 4], from: .peripheral, now: .zero) { frames += 1 }
    #expect(frames == 2 * (depth ?? 20_000) + 64)
  }

  @Test("an empty frame is refused")
  func emptyFrame() {
    var link = LinkLayer(parameters: LinkParameters(), generator: SeededGenerator(seed: 1), now: .zero)
    let isTaken = link.enqueue([], from: .central, now: .zero)
    #expect(!isTaken)
    #expect(link.nextWakeup == nil)
  }
}
