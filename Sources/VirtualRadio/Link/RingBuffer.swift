/// A first-in first-out queue whose ends move in constant time.
struct RingBuffer<Element> {
  // The capacity is zero or a power of two, so that positions wrap by masking.
  private var storage: [Element?] = []
  private var head = 0
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// The oldest element.
  var first: Element? { count == 0 ? nil : storage[head] }

  /// The element behind `index` older ones.
  subscript(index: Int) -> Element? {
    index < count ? storage[(head + index) & (storage.count - 1)] : nil
  }

  /// Adds the newest element.
  mutating func append(_ element: Element) {
    if count == storage.count { grow() }
    storage[(head + count) & (storage.count - 1)] = element
    count += 1
  }

  /// Takes the oldest element.
  mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    // Taken and not copied: the buffer must not keep the element alive.
    let element = storage[head].take()
    head = (head + 1) & (storage.count - 1)
    count -= 1
    return element
  }

  /// Drops all elements and their storage.
  mutating func removeAll() { self = RingBuffer() }

  /// Visits the elements, oldest first.
  func forEach(_ body: (Element) -> Void) {
    for index in 0..<count {
      if let element = storage[(head + index) & (storage.count - 1)] { body(element) }
    }
  }

  private mutating func grow() {
    var larger: [Element?] = []
    larger.reserveCapacity(max(storage.count * 2, 16))
    for index in 0..<count { larger.append(storage[(head + index) & (storage.count - 1)]) }
    while larger.count < max(storage.count * 2, 16) { larger.append(nil) }
    storage = larger
    head = 0
  }
}
