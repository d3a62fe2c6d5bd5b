/// Counts the frames of one side that the port holds, and says whether there is room for more.
struct FrameQueue {
  /// What a frame carries.
  enum Kind: Hashable {
    /// Requests, answers, signalling: few, and never refused.
    case control
    /// Write Commands and notifications.
    case att
    /// K-frames.
    case channel
  }

  private var budget: FrameBudget
  private var frames = RingBuffer<(octets: Int, kind: Kind)>()
  private(set) var attFrames = 0
  private(set) var channelFrames = 0
  /// Frames that were held when the queue was full last.
  private var capacity = 2

  /// Makes the count of a link's direction.
  init(_ parameters: LinkParameters) { budget = FrameBudget(parameters) }

  /// Whether bulk traffic may send one more frame.
  var hasRoom: Bool { budget.hasRoom }

  /// Frames that each of two kinds of bulk traffic may hold while both want to send.
  var share: Int { max(1, capacity / 2) }

  mutating func replaceParameters(_ parameters: LinkParameters) {
    budget = FrameBudget(parameters)
    frames.forEach { budget.add(octets: $0.octets) }
  }

  mutating func add(octets: Int, _ kind: Kind) {
    budget.add(octets: octets)
    frames.append((octets, kind))
    if !budget.hasRoom { capacity = frames.count }
    count(kind, 1)
  }

  /// Takes note that the oldest frames are gone.
  mutating func remove(_ count: Int) {
    for _ in 0..<max(count, 0) {
      guard let frame = frames.popFirst() else { return }
      budget.remove(octets: frame.octets)
      self.count(frame.kind, -1)
    }
  }

  private mutating func count(_ kind: Kind, _ change: Int) {
    switch kind {
    case .control: break
    case .att: attFrames += change
    case .channel: channelFrames += change
    }
  }
}
