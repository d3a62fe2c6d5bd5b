import BulkTransfer
import Testing

@Suite("Rate estimator")
struct RateEstimatorTests {
  /// Counts 1000 octets every tenth of a second: 10 000 octets per second.
  private func run(_ rate: inout RateEstimator, from start: Duration, octets: Int) -> Duration {
    var now = start
    for _ in 0..<(octets / 1000) {
      now += .milliseconds(100)
      rate.add(1000, now: now)
    }
    return now
  }

  @Test("A steady flow has its rate, in the window and on average")
  func steady() throws {
    var rate = RateEstimator()
    rate.start(now: .seconds(5))
    let now = run(&rate, from: .seconds(5), octets: 100_000)
    #expect(abs(try #require(rate.averageRate(now: now)) - 10_000) < 1)
    #expect(abs(try #require(rate.windowRate(now: now)) - 10_000) < 1)
    #expect(rate.total == 100_000)
  }

  @Test("Pauses are no part of the average nor of the window")
  func pause() throws {
    var rate = RateEstimator()
    rate.start(now: .zero)
    var now = run(&rate, from: .zero, octets: 50_000)
    rate.stop(at: now)
    now += .seconds(20)
    #expect(abs(try #require(rate.windowRate(now: now)) - 10_000) < 1)
    rate.start(now: now)
    now = run(&rate, from: now, octets: 50_000)
    #expect(rate.transferTime(now: now) == .seconds(10))
    #expect(abs(try #require(rate.averageRate(now: now)) - 10_000) < 1)
    #expect(abs(try #require(rate.windowRate(now: now)) - 10_000) < 1)
  }

  @Test("A stop may lie ahead, and a later one does not undo it")
  func stopAhead() {
    var rate = RateEstimator()
    rate.start(now: .seconds(1))
    rate.stop(at: .seconds(3))
    rate.stop(at: .seconds(5))
    #expect(rate.transferTime(now: .seconds(2)) == .seconds(1))
    #expect(rate.transferTime(now: .seconds(9)) == .seconds(2))
    rate.start(now: .seconds(9))
    #expect(rate.transferTime(now: .seconds(10)) == .seconds(3))
    #expect(rate.isRunning)
  }

  @Test("The window forgets, the average does not")
  func change() throws {
    var rate = RateEstimator(window: .seconds(2))
    rate.start(now: .zero)
    var now = run(&rate, from: .zero, octets: 100_000)
    for _ in 0..<100 {
      now += .milliseconds(100)
      rate.add(100, now: now)
    }
    #expect(abs(try #require(rate.windowRate(now: now)) - 1000) < 60)
    #expect(abs(try #require(rate.averageRate(now: now)) - 5500) < 60)
  }

  @Test("A flow that stops shows")
  func stall() throws {
    var rate = RateEstimator()
    rate.start(now: .zero)
    let now = run(&rate, from: .zero, octets: 30_000)
    #expect(try #require(rate.windowRate(now: now + .seconds(27))) < 1100)
  }

  @Test("Nothing measured, nothing claimed")
  func empty() {
    var rate = RateEstimator()
    #expect(rate.averageRate(now: .seconds(1)) == nil)
    #expect(rate.windowRate(now: .seconds(1)) == nil)
    rate.start(now: .seconds(1))
    #expect(rate.averageRate(now: .seconds(2)) == nil)
  }

  @Test("Many small arrivals cost no more than a few samples, and lose nothing")
  func manySamples() throws {
    var rate = RateEstimator()
    rate.start(now: .zero)
    for index in 1...100_000 { rate.add(1, now: .microseconds(index * 100)) }
    #expect(rate.total == 100_000)
    #expect(abs(try #require(rate.windowRate(now: .seconds(10))) - 10_000) < 400)
  }
}

@Suite("Round trips")
struct RoundTripEstimatorTests {
  @Test("The smoothed value moves by an eighth, the shortest one is kept")
  func smoothing() {
    var estimator = RoundTripEstimator()
    estimator.add(.milliseconds(80), now: .zero)
    #expect(estimator.smoothed == .milliseconds(80))
    estimator.add(.milliseconds(160), now: .seconds(1))
    #expect(estimator.smoothed == .milliseconds(90))
    #expect(estimator.shortest == .milliseconds(80))
    estimator.add(.milliseconds(-5), now: .seconds(1))
    #expect(estimator.shortest == .milliseconds(80))
  }

  @Test("A link that has become slower does not look congested for ever")
  func slowerLink() {
    var estimator = RoundTripEstimator(period: .seconds(10))
    estimator.add(.milliseconds(40), now: .zero)
    estimator.add(.milliseconds(120), now: .zero)
    #expect(!estimator.isQueueing)
    for second in 1...25 {
      estimator.add(.milliseconds(800), now: .seconds(second))
      if second < 10 { #expect(estimator.isQueueing) }
    }
    #expect(!estimator.isQueueing)
  }

  @Test("Patience is four round trips and never less than its floor")
  func patience() {
    var estimator = RoundTripEstimator()
    #expect(estimator.patience(atLeast: .seconds(1)) == .seconds(1))
    #expect(!estimator.isQueueing)
    estimator.add(.seconds(2), now: .zero)
    #expect(estimator.patience(atLeast: .seconds(1)) == .seconds(8))
  }
}
