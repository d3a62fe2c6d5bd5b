import Radio
import Testing
import VirtualRadio

@Suite struct TimerRoundingTests {
  /// A deadline between two nanoseconds, looked at by a timer that fires before it, would be set again without end.
  @Test(arguments: [Duration.seconds(2) / 3, .seconds(10) / 7, .nanoseconds(1) / 3, .seconds(1)])
  func aTimerIsNeverEarly(delay: Duration) throws {
    let clock = VirtualClock(.lockStep)
    let deadline = clock.now + delay
    let early = Early()
    let timer = clock.schedule(after: delay) { early.isEarly = clock.now < deadline }
    try clock.run(for: delay + .milliseconds(1))
    #expect(early.isEarly == false)
    withExtendedLifetime(timer) {}
  }

  // Sendable: written by the timer while the test's thread drives the clock, and read after that.
  private final class Early: @unchecked Sendable {
    var isEarly: Bool?
  }
}
