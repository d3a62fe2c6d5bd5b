import Foundation
import Radio
import Testing

@testable import BlueZRadio

@Suite("Subscribers and their room") struct SubscriptionsTests {
  private let one = PeerID(UUID())
  private let two = PeerID(UUID())
  private let pushes = LocalCharacteristicID(1)
  private let others = LocalCharacteristicID(2)

  private func subscribed(_ centrals: [PeerID]) -> Subscriptions {
    var book = Subscriptions()
    for central in centrals { #expect(book.subscribe(central, to: pushes) == true) }
    return book
  }

  /// Sends values until there is no room; returns how many.
  private func fill(
    _ book: inout Subscriptions, _ size: Int, isIndicated: Bool = false,
    sourceLocation: SourceLocation = #_sourceLocation
  ) -> Int {
    for count in 0..<10_000 {
      switch book.take(size, of: pushes, isIndicated: isIndicated, to: nil) {
      case .toAll(let centrals): book.send(size, to: centrals)
      case .full: return count
      case .nowhere, .onlySomeWanted:
        Issue.record("not sent", sourceLocation: sourceLocation)
        return count
      }
    }
    Issue.record("without a bound", sourceLocation: sourceLocation)
    return -1
  }

  @Test("Nobody listens: the value is taken and goes nowhere")
  func nobody() {
    var book = Subscriptions()
    book.touch(one, mtu: 100)
    #expect(book.take(5, of: pushes, isIndicated: false, to: nil) == .nowhere)
    #expect(book.subscribe(one, to: others) == true)
    #expect(book.take(5, of: pushes, isIndicated: false, to: [one]) == .nowhere)
    #expect(book.take(5, of: others, isIndicated: false, to: [two]) == .nowhere)
  }

  @Test("What is on its way is bounded in values and in octets", arguments: [0, 1, 20, 182, 510])
  func bounds(_ size: Int) {
    var book = subscribed([one])
    let count = fill(&book, size)
    #expect(count == min(64, size == 0 ? 64 : 16_384 / size))
  }

  @Test("A single value always has room")
  func longest() {
    var window = SendWindow()
    #expect(window.hasRoom(for: 100_000))
    window.take(100_000)
    #expect(!window.hasRoom(for: 0))
  }

  @Test("Evidence confirms what was sent before it was looked for, and no more; a refusal gets one signal")
  func evidence() throws {
    var book = subscribed([one])
    #expect(book.beginProbe(of: one) == nil)
    for _ in 0..<31 { take(&book) }
    #expect(book.beginProbe(of: one) == nil)
    take(&book)
    let probe = try #require(evidence(&book))
    #expect(book.beginProbe(of: one) == nil)
    #expect(fill(&book, 20) == 32)
    #expect(book.endProbe(probe, of: one) == true)
    #expect(book.endProbe(probe, of: one) == false)
    #expect(fill(&book, 20) == 32)
    let next = try #require(evidence(&book))
    #expect(book.endProbe(next, of: one) == true)
    #expect(book.beginProbe(of: one) == nil)
    // Without a refusal there is no signal.
    #expect(fill(&book, 20) == 64)
  }

  private func evidence(_ book: inout Subscriptions) -> Subscriptions.Probe? { book.beginProbe(of: one) }

  private func take(_ book: inout Subscriptions) {
    guard case .toAll(let centrals) = book.take(20, of: pushes, isIndicated: false, to: nil) else {
      Issue.record("no room")
      return
    }
    book.send(20, to: centrals)
  }

  @Test("A value that was taken and not handed over yet is not confirmed")
  func unsent() throws {
    var book = subscribed([one])
    for _ in 0..<64 { _ = book.take(20, of: pushes, isIndicated: false, to: nil) }
    for _ in 0..<40 { book.send(20, to: [one]) }
    let probe = try #require(evidence(&book))
    for _ in 0..<24 { book.send(20, to: [one]) }
    _ = book.endProbe(probe, of: one)
    #expect(fill(&book, 20) == 40)
  }

  @Test("The slowest holds all up; who leaves holds nobody up")
  func slowest() throws {
    var book = subscribed([one, two])
    _ = fill(&book, 20)
    let probe = try #require(evidence(&book))
    #expect(book.endProbe(probe, of: one) == false)
    #expect(book.take(20, of: pushes, isIndicated: false, to: nil) == .full)
    #expect(book.endLink(two) == Subscriptions.Leaving(ended: [pushes], isReady: true))
    #expect(fill(&book, 20) == 64)
  }

  @Test("A value for one of two is not sent to both")
  func oneOfTwo() {
    var book = subscribed([one, two])
    #expect(book.take(1, of: pushes, isIndicated: false, to: [one]) == .onlySomeWanted)
    #expect(book.take(1, of: pushes, isIndicated: false, to: [two, one]) == .toAll([one, two]))
    _ = book.unsubscribe(two, from: pushes)
    #expect(book.take(1, of: pushes, isIndicated: false, to: [one]) == .toAll([one]))
  }

  @Test("Indications wait for confirmations")
  func indications() {
    var book = subscribed([one])
    #expect(fill(&book, 20, isIndicated: true) == 4)
    #expect(book.beginProbe(of: one) == nil)
    #expect(book.confirm(pushes) == true)
    #expect(book.confirm(others) == false)
    #expect(fill(&book, 20, isIndicated: true) == 1)
    for _ in 0..<4 { _ = book.confirm(pushes) }
    #expect(book.confirm(pushes) == false)
    #expect(fill(&book, 20, isIndicated: true) == 4)
  }

  @Test("Whoever waits is let go where the subscription ends", arguments: [true, false])
  func unsubscribing(isForgotten: Bool) {
    var book = subscribed([one])
    #expect(book.subscribe(one, to: others) == true)
    _ = fill(&book, 20, isIndicated: true)
    let isReady = isForgotten ? book.forget([pushes]) : book.unsubscribe(one, from: pushes).isReady
    #expect(isReady)
    #expect(book.subscribers(of: pushes).isEmpty)
    #expect(book.subscribers(of: others) == [one])
    #expect(book.take(1, of: pushes, isIndicated: true, to: nil) == .nowhere)
  }

  @Test("The end of a link ends its subscriptions, each told once")
  func endOfLink() {
    var book = subscribed([one])
    #expect(book.subscribe(one, to: pushes) == false)
    #expect(book.subscribe(one, to: others) == true)
    #expect(book.endLink(one) == Subscriptions.Leaving(ended: [pushes, others], isReady: false))
    #expect(book.endLink(one) == Subscriptions.Leaving())
    #expect(book.unsubscribe(one, from: pushes) == Subscriptions.Leaving())
    #expect(book.mtu(of: one) == nil)
  }

  @Test("Evidence for a link that is over says nothing of the next one")
  func staleEvidence() throws {
    var book = subscribed([one])
    _ = fill(&book, 20)
    let probe = try #require(evidence(&book))
    _ = book.endLink(one)
    #expect(book.subscribe(one, to: pushes) == true)
    _ = fill(&book, 20)
    _ = try #require(evidence(&book))
    #expect(book.endProbe(probe, of: one) == false)
    #expect(fill(&book, 20) == 0)
  }

  @Test("The ATT MTU is what was told last, and 23 before")
  func mtu() {
    var book = Subscriptions()
    #expect(book.mtu(of: one) == nil)
    book.touch(one)
    #expect(book.mtu(of: one) == 23)
    book.touch(one, mtu: 185)
    book.touch(one)
    #expect(book.mtu(of: one) == 185)
  }
}
