import Testing

@testable import BulkTransfer

@Suite("Events for a listener", .timeLimit(.minutes(10)))
struct EventFeedTests {
  private enum Event: Hashable, Sendable {
    case stand(object: Int, Int)
    case lost(Int)
    case result(Int)
  }

  private static func feed() -> EventFeed<Event> {
    EventFeed { event in
      switch event {
      case .stand(let object, _): .progress(object: object, .transfer, .uncoded)
      case .lost: .lost
      case .result: nil
      }
    }
  }

  @Test("A listener that was blocked misses no result, and of a stand it hears the newest")
  func slow() async {
    let feed = Self.feed()
    var iterator = feed.makeAsyncIterator()
    for number in 0..<5000 {
      for stand in 0..<20 {
        feed.yield(.stand(object: number, stand))
        feed.yield(.lost(stand))
      }
      feed.yield(.result(number))
    }
    #expect(feed.owed == 15_000)
    feed.finish()
    var heard: [Event] = []
    while let event = await iterator.next() { heard.append(event) }
    let expected = (0..<5000).flatMap { [Event.stand(object: $0, 19), .lost(19), .result($0)] }
    #expect(heard == expected)
  }

  @Test("A stand that was not the newest one of its thing stays where another thing has a newer one")
  func things() async {
    let feed = Self.feed()
    feed.yield(.stand(object: 0, 1))
    feed.yield(.stand(object: 1, 1))
    feed.yield(.stand(object: 0, 2))
    feed.yield(.result(0))
    feed.yield(.stand(object: 0, 3))
    feed.finish()
    let heard = await feed.reduce(into: [Event]()) { $0.append($1) }
    #expect(heard == [.stand(object: 1, 1), .stand(object: 0, 2), .result(0), .stand(object: 0, 3)])
  }

  @Test("While nobody listens, the newest are kept and no more")
  func unheard() async {
    let feed = Self.feed()
    for number in 0..<100_000 { feed.yield(.result(number)) }
    #expect(feed.owed == 0)
    feed.finish()
    let heard = await feed.reduce(into: [Event]()) { $0.append($1) }
    #expect(heard == (100_000 - EventFeed<Event>.unheardLimit..<100_000).map { .result($0) })
  }

  @Test("A listener that waits is told at once, in order, and of the end")
  func waiting() async {
    let feed = Self.feed()
    let listener = Task { await feed.reduce(into: [Event]()) { $0.append($1) } }
    for number in 0..<1000 {
      feed.yield(.result(number))
      if number.isMultiple(of: 10) { await Task.yield() }
    }
    feed.finish()
    feed.yield(.result(1000))
    #expect(await listener.value == (0..<1000).map { .result($0) })
  }

  @Test("A cancelled listener is at its end, and another one can go on")
  func cancelled() async {
    let feed = Self.feed()
    let listener = Task { await feed.reduce(into: 0) { count, _ in count += 1 } }
    listener.cancel()
    #expect(await listener.value == 0)
    feed.yield(.result(1))
    feed.finish()
    #expect(await feed.reduce(into: [Event]()) { $0.append($1) } == [.result(1)])
  }
}
