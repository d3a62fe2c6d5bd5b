@testable import VirtualRadio

/// A link with two hosts that send what they are given and keep what they get.
struct LinkRig {
  var link: LinkLayer
  var now: Duration = .zero
  /// Frames by the side that received them.
  var received: [LinkSide: [[UInt8]]] = [.central: [], .peripheral: []]
  var instants: [LinkSide: [Duration]] = [.central: [], .peripheral: []]
  var completed: [LinkSide: Int] = [.central: 0, .peripheral: 0]
  var end: (reason: LinkEnd, at: Duration)?
  /// Frames that wait for room.
  var backlog: [LinkSide: ArraySlice<[UInt8]>] = [:]

  init(_ parameters: LinkParameters = LinkParameters(), seed: UInt64 = 1) {
    link = LinkLayer(parameters: parameters, generator: SeededGenerator(seed: seed), now: .zero)
  }

  /// Runs until `limit` or until nothing is left to happen.
  mutating func run(until limit: Duration = .seconds(3600)) {
    refill()
    while let wakeup = link.nextWakeup, wakeup <= limit {
      now = wakeup
      var outputs: [LinkOutput] = []
      link.advance(to: wakeup, into: &outputs)
      for output in outputs { take(output) }
      refill()
    }
    if limit < .seconds(3600) { now = limit }
  }

  mutating func send(_ frame: [UInt8], from side: LinkSide) -> Bool {
    link.enqueue(frame, from: side, now: now)
  }

  private mutating func refill() {
    for side in [LinkSide.central, .peripheral] {
      while link.hasRoom(side), let frame = backlog[side]?.popFirst() {
        _ = link.enqueue(frame, from: side, now: now)
      }
    }
  }

  private mutating func take(_ output: LinkOutput) {
    switch output {
    case .delivered(let side, let frame, let instant):
      received[side, default: []].append(frame)
      instants[side, default: []].append(instant)
    case .completed(let side, let frames, _): completed[side, default: 0] += frames
    case .ended(let reason, let instant): end = (reason, instant)
    }
  }

  /// Frames of differing lengths that differ in their content.
  static func frames(_ count: Int, seed: UInt64, longest: Int = 521) -> [[UInt8]] {
    var generator = SeededGenerator(seed: seed)
    return (0..<count).map { index in
      let length = Int.random(in: 4...longest, using: &generator)
      return (0..<length).map { UInt8(truncatingIfNeeded: index &* 31 &+ $0) }
    }
  }
}
