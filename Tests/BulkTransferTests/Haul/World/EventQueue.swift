/// Events in the order of their time; at one time in the order in which they were added.
struct EventQueue<Event> {
  /// Kept apart from the events, so that sorting moves numbers only.
  private struct Key {
    var time: Int
    var number: Int
    var slot: Int

    func isBefore(_ other: Key) -> Bool {
      time != other.time ? time < other.time : number < other.number
    }
  }

  private var heap: [Key] = []
  private var slots: [Event?] = []
  private var free: [Int] = []
  private var count = 0

  var isEmpty: Bool { heap.isEmpty }
  var nextTime: Int? { heap.first?.time }

  mutating func add(_ event: Event, at time: Int) {
    var slot = slots.count
    if let reused = free.popLast() {
      slot = reused
      slots[slot] = event
    } else {
      slots.append(event)
    }
    let key = Key(time: time, number: count, slot: slot)
    count += 1
    heap.append(key)
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      let above = heap[parent]
      guard key.isBefore(above) else { break }
      heap[child] = above
      child = parent
    }
    heap[child] = key
  }

  mutating func take() -> (time: Int, event: Event)? {
    guard let first = heap.first, let last = heap.popLast() else { return nil }
    if !heap.isEmpty { sink(last) }
    guard let event = slots[first.slot] else { return nil }
    slots[first.slot] = nil
    free.append(first.slot)
    return (first.time, event)
  }

  private mutating func sink(_ key: Key) {
    var parent = 0
    while true {
      var child = 2 * parent + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
      let below = heap[child]
      guard below.isBefore(key) else { break }
      heap[parent] = below
      parent = child
    }
    heap[parent] = key
  }
}
