/// Work in order of time; what has the same time keeps the order in which it was added.
///
/// Cancelled work is dropped at once, its place in the heap later, so that timers that are set anew for every packet cost neither memory nor time.
struct EventQueue<Work> {
  /// Names work that was added, never reused.
  typealias Token = UInt64

  private struct Place {
    var time: Int64
    var token: Token

    func isBefore(_ other: Place) -> Bool {
      time != other.time ? time < other.time : token < other.token
    }
  }

  private var heap: [Place] = []
  private var waiting: [Token: Work] = [:]
  private var lastToken: Token = 0

  /// How much work waits.
  var count: Int { waiting.count }

  /// Adds work for an instant in nanoseconds.
  mutating func add(at time: Int64, _ work: Work) -> Token {
    lastToken += 1
    waiting[lastToken] = work
    heap.append(Place(time: time, token: lastToken))
    siftUp(heap.count - 1)
    return lastToken
  }

  /// Drops work; returns it if it was still waiting.
  @discardableResult
  mutating func cancel(_ token: Token) -> Work? {
    guard let work = waiting.removeValue(forKey: token) else { return nil }
    if heap.count > 64, heap.count > 2 * waiting.count { compact() }
    return work
  }

  /// When the first work is due.
  mutating func firstTime() -> Int64? {
    while let first = heap.first, waiting[first.token] == nil { removeFirstPlace() }
    return heap.first?.time
  }

  /// Takes the first work.
  mutating func takeFirst() -> (time: Int64, work: Work)? {
    while let first = heap.first {
      removeFirstPlace()
      if let work = waiting.removeValue(forKey: first.token) { return (first.time, work) }
    }
    return nil
  }

  /// Drops everything.
  mutating func removeAll() {
    heap.removeAll()
    waiting.removeAll()
  }

  private mutating func compact() {
    heap.removeAll { waiting[$0.token] == nil }
    // A sorted array is a heap.
    heap.sort { $0.isBefore($1) }
  }

  private mutating func removeFirstPlace() {
    guard let last = heap.popLast(), !heap.isEmpty else { return }
    heap[0] = last
    siftDown()
  }

  private mutating func siftUp(_ start: Int) {
    var child = start
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].isBefore(heap[parent]) else { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  private mutating func siftDown() {
    var parent = 0
    while true {
      var least = parent
      for child in (2 * parent + 1)...(2 * parent + 2)
      where child < heap.count && heap[child].isBefore(heap[least]) { least = child }
      guard least != parent else { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
