/// The link model alone: one direction with a source that never runs dry, and nothing above it that would cost time.
///
/// What comes of it is what ``LinkCeiling`` computes; how fast it runs is the cost of simulating a link.
public struct LinkTrial {
  /// Units that have arrived whole.
  public var units: Int { frames / source.count }
  /// Octets of the frames that have arrived, L2CAP headers included.
  public private(set) var frameOctets = 0
  /// The same of one unit.
  public let frameOctetsInUnit: Int
  /// Whether the link was lost, by its supervision timeout.
  public var hasEnded: Bool { link.hasEnded }

  private var link: LinkLayer
  private let source: [[UInt8]]
  private var next = 0
  private var frames = 0
  private var outputs: [LinkOutput] = []

  /// Makes a link at whose central units wait without end.
  ///
  /// - Parameters:
  ///   - unit: octets of the L2CAP frames of one unit, basic header included, at least one.
  ///   - seed: decides which packets are lost.
  public init(_ parameters: LinkParameters, unit: [Int], seed: UInt64 = 1) {
    source = unit.isEmpty ? [[0]] : unit.map { [UInt8](repeating: 0x5A, count: max($0, 1)) }
    frameOctetsInUnit = source.reduce(0) { $0 + $1.count }
    link = LinkLayer(parameters: parameters, generator: SeededGenerator(seed: seed), now: .zero)
  }

  /// Lets the link work until a moment of its time, counted from its first event.
  public mutating func run(until end: Duration) {
    fill(now: .zero)
    while let wakeup = link.nextWakeup, wakeup < end {
      link.advance(to: wakeup, into: &outputs)
      for output in outputs {
        switch output {
        case .delivered(_, let frame, _):
          frames += 1
          frameOctets += frame.count
        case .completed, .ended: break
        }
      }
      outputs.removeAll(keepingCapacity: true)
      fill(now: wakeup)
    }
  }

  /// What the direction of the data has done until a moment.
  public func usage(at now: Duration) -> LinkUsage { link.usage(.central, now: now) }

  private mutating func fill(now: Duration) {
    while link.hasRoom(.central), link.enqueue(source[next], from: .central, now: now) {
      next = (next + 1) % source.count
    }
  }
}
