internal import Foundation

/// A queue of bytes with a fixed capacity.
struct ByteQueue {
  /// How many bytes it can hold.
  let capacity: Int
  private var bytes: [UInt8] = []
  private var head = 0

  /// Makes an empty queue.
  init(capacity: Int) { self.capacity = capacity }

  /// How many bytes it holds.
  var count: Int { bytes.count - head }

  /// How many more it would take.
  var space: Int { capacity - count }

  var isEmpty: Bool { count == 0 }

  /// Appends what fits and returns how many bytes that were.
  mutating func append(_ new: Data) -> Int {
    let taken = min(new.count, space)
    makeRoom()
    bytes.append(contentsOf: new.prefix(taken))
    return taken
  }

  /// Appends what fits and returns how many bytes that were.
  mutating func append(_ new: ArraySlice<UInt8>) -> Int {
    let taken = min(new.count, space)
    makeRoom()
    bytes.append(contentsOf: new.prefix(taken))
    return taken
  }

  /// Moves up to `limit` bytes from the front to the end of `target`.
  mutating func move(upTo limit: Int, to target: inout [UInt8]) {
    let end = head + min(max(limit, 0), count)
    target.append(contentsOf: bytes[head..<end])
    head = end
  }

  /// Takes up to `limit` bytes from the front.
  mutating func take(upTo limit: Int) -> Data {
    let end = head + min(max(limit, 0), count)
    defer { head = end }
    return Data(bytes[head..<end])
  }

  mutating func removeAll() {
    bytes = []
    head = 0
  }

  /// Gives back what was taken before the array grows: it never holds more than twice the capacity.
  private mutating func makeRoom() {
    if head == bytes.count {
      bytes.removeAll(keepingCapacity: true)
      head = 0
    } else if head >= capacity / 2 {
      bytes.removeSubrange(..<head)
      head = 0
    }
  }
}
