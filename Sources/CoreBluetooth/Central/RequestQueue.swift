/// The requests of one peripheral that have not been answered, in the order in which they were made.
///
/// Most are answered by the radio. Some fail here, before the radio hears of them; such a failure waits until everything that was asked
/// before it has been answered, so that a program sees one order.
struct RequestQueue<Request: Sendable>: Sendable {
  private struct Entry: Sendable {
    var request: Request
    var failure: (any Error)?
  }

  private var entries: [UInt32: Entry] = [:]
  /// The number of the oldest request that may be unanswered.
  private var head: UInt32
  /// The number of the next request.
  private(set) var next: UInt32

  /// Makes a queue without requests; `first` is the number of the first one.
  init(from first: UInt32 = 0) { (head, next) = (first, first) }

  /// Appends a request that the radio will answer, and returns its number.
  mutating func append(_ request: Request) -> UInt32 { append(Entry(request: request)) }

  /// Appends a request that has failed already.
  mutating func append(_ request: Request, failedWith error: any Error) {
    _ = append(Entry(request: request, failure: error))
  }

  /// Removes the request that the radio has answered; nil where there is none of that number.
  mutating func complete(_ number: UInt32) -> Request? {
    guard let entry = entries[number], entry.failure == nil else { return nil }
    entries[number] = nil
    return entry.request
  }

  /// Removes the next failure that is due: everything before it has been answered.
  mutating func popFailure() -> (Request, any Error)? {
    while head != next {
      guard let entry = entries[head] else {
        head &+= 1
        continue
      }
      guard let failure = entry.failure else { return nil }
      entries[head] = nil
      return (entry.request, failure)
    }
    return nil
  }

  /// Forgets all requests: the link has ended.
  mutating func removeAll() {
    entries.removeAll()
    head = next
  }

  private mutating func append(_ entry: Entry) -> UInt32 {
    defer { next &+= 1 }
    entries[next] = entry
    return next
  }
}
