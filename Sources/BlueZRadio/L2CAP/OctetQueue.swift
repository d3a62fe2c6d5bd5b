internal import Foundation

/// A queue of octets with a bound.
struct OctetQueue {
  /// How many octets it can hold.
  let capacity: Int
  private var storage: [UInt8] = []
  private var head = 0

  /// Makes an empty queue.
  init(capacity: Int) { self.capacity = capacity }

  /// How many octets it holds.
  var count: Int { storage.count - head }

  /// How many more it would take.
  var space: Int { capacity - count }

  var isEmpty: Bool { count == 0 }

  /// Appends what fits and returns how many octets that were.
  mutating func append(_ octets: Data) -> Int {
    let taken = min(octets.count, space)
    guard taken > 0 else { return 0 }
    moveUp()
    storage.append(contentsOf: octets.prefix(taken))
    return taken
  }

  /// Appends what fits and returns how many octets that were.
  mutating func append(_ octets: ArraySlice<UInt8>) -> Int {
    let taken = min(octets.count, space)
    guard taken > 0 else { return 0 }
    moveUp()
    storage.append(contentsOf: octets.prefix(taken))
    return taken
  }

  /// The first octets, `count` at most.
  func prefix(_ count: Int) -> ArraySlice<UInt8> { storage[head...].prefix(max(count, 0)) }

  /// Drops octets from the front.
  mutating func removeFirst(_ count: Int) { head += min(max(count, 0), self.count) }

  /// Takes up to `count` octets from the front.
  mutating func take(upTo count: Int) -> Data {
    let octets = prefix(count)
    head += octets.count
    return Data(octets)
  }

  mutating func removeAll() {
    storage = []
    head = 0
  }

  /// Gives back what was taken before more is appended, so that never more than twice the capacity is held; octets are moved only once the
  /// free part is as large as they may be.
  private mutating func moveUp() {
    if head == storage.count {
      storage.removeAll(keepingCapacity: true)
      head = 0
    } else if head >= capacity / 2 {
      storage.removeSubrange(..<head)
      head = 0
    }
  }
}
