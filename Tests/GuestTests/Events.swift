import Testing

/// Events in the order in which they came, to be awaited.
final class Events<Event: Sendable>: Sendable {
  private let stream: AsyncStream<Event>
  private let continuation: AsyncStream<Event>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream(of: Event.self) }

  func put(_ event: Event) { continuation.yield(event) }

  /// The first that `find` takes; those before it are dropped.
  func first<Found>(sourceLocation: SourceLocation = #_sourceLocation, _ find: (Event) -> Found?) async throws
    -> Found
  {
    for await event in stream {
      if let found = find(event) { return found }
    }
    return try #require(nil as Found?, sourceLocation: sourceLocation)
  }

  /// What comes until `isLast`, that event included.
  func through(_ isLast: (Event) -> Bool) async -> [Event] {
    var all: [Event] = []
    for await event in stream {
      all.append(event)
      if isLast(event) { break }
    }
    return all
  }
}
