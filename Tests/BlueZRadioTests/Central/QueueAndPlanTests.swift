import Radio
import Testing

@testable import BlueZRadio

@Suite("Operations on attributes")
struct AttributeQueueTests {
  @Test("one at a time, first in, first out")
  func order() {
    var queue = AttributeQueue<Int>()
    for number in 1...3 { queue.append(number) }
    var seen: [Int] = []
    while let next = queue.next(now: .zero) {
      #expect(queue.next(now: .zero) == nil)
      seen.append(next)
      queue.finish()
    }
    #expect(seen == [1, 2, 3])
  }

  @Test("a busy daemon is asked again at longer and longer intervals, within a limit")
  func busy() {
    var queue = AttributeQueue<Int>()
    queue.append(1)
    _ = queue.next(now: .zero)
    var now = Duration.zero
    var pauses: [Duration] = []
    while let pause = queue.pause(now: now, limit: .seconds(30)) {
      pauses.append(pause)
      now += pause
    }
    #expect(pauses == pauses.sorted())
    #expect(pauses.max() == .milliseconds(500))
    #expect(now >= .seconds(30) && now < .seconds(31))
    // The next operation has its own patience.
    queue.finish()
    queue.append(2)
    _ = queue.next(now: now)
    #expect(queue.pause(now: now, limit: .seconds(30)) == pauses.first)
  }

  @Test("what waits of somebody who has left is dropped, what runs is not")
  func leaving() {
    var queue = AttributeQueue<Int>()
    for number in [1, 2, 1, 3] { queue.append(number) }
    _ = queue.next(now: .zero)
    queue.remove { $0 == 1 }
    #expect(queue.running == 1)
    queue.finish()
    #expect(queue.next(now: .zero) == 2)
    #expect(queue.contains { $0 == 3 } && !queue.contains { $0 == 1 })
  }
}

@Suite("The daemon's discovery")
struct DiscoveryPlanTests {
  private static let heart = BluetoothUUID(UInt16(0x180D))
  private static let lamp = BluetoothUUID(UInt16(0xFFF0))

  /// Runs the plan until it is content; returns what the daemon's discovery is then.
  private func settle(_ plan: inout DiscoveryPlan) -> (filter: DiscoveryPlan.Filter?, actions: [String]) {
    var filter: DiscoveryPlan.Filter?
    var actions: [String] = []
    while let action = plan.next() {
      #expect(plan.next() == nil, "one call at a time")
      switch action {
      case .start(let new):
        filter = new
        actions.append("start")
      case .stop: actions.append("stop")
      }
      #expect(plan.ended(action, success: true) == false)
    }
    return (filter, actions)
  }

  @Test("scans and searches share one discovery, which ends with the last")
  func sharing() {
    var plan = DiscoveryPlan()
    plan.setScans([ScanFilter(services: [Self.lamp])], isNew: true)
    #expect(settle(&plan).actions == ["start"])
    plan.setScans(
      [ScanFilter(services: [Self.lamp]), ScanFilter(services: [Self.heart, Self.lamp])], isNew: true)
    let both = settle(&plan)
    #expect(both.actions == ["stop", "start"])
    #expect(both.filter?.services == [Self.lamp, Self.heart])
    plan.addSearches(1)
    #expect(settle(&plan).filter?.services == [])
    plan.setScans([], isNew: false)
    #expect(settle(&plan).actions == [])
    plan.addSearches(-1)
    #expect(settle(&plan).actions == ["stop"])
  }

  @Test("a scan that replaces another begins anew, so that the daemon reports again")
  func replacement() {
    var plan = DiscoveryPlan()
    plan.setScans([ScanFilter()], isNew: true)
    _ = settle(&plan)
    plan.setScans([ScanFilter()], isNew: true)
    #expect(settle(&plan).actions == ["stop", "start"])
    plan.setScans([ScanFilter()], isNew: false)
    #expect(settle(&plan).actions == [])
  }

  @Test(
    "the daemon's filter lets everything through that a scan wants",
    arguments: [
      ([ScanFilter(services: [lamp], solicitedServices: [heart])], []),
      ([ScanFilter(services: [lamp]), ScanFilter()], []), ([ScanFilter(services: [lamp])], [lamp]),
    ] as [([ScanFilter], [BluetoothUUID])])
  func services(scans: [ScanFilter], expected: [BluetoothUUID]) {
    var plan = DiscoveryPlan()
    plan.setScans(scans, isNew: true)
    #expect(settle(&plan).filter?.services == expected)
  }

  @Test("duplicates are asked for where one scan wants them")
  func duplicates() {
    var plan = DiscoveryPlan()
    plan.setScans([ScanFilter(), ScanFilter(allowDuplicates: true)], isNew: true)
    #expect(settle(&plan).filter?.allowDuplicates == true)
  }

  @Test("a failed start is tried again as long as somebody wants it")
  func failure() throws {
    var plan = DiscoveryPlan()
    plan.setScans([ScanFilter()], isNew: true)
    let next = plan.next()
    let start = try #require(next)
    #expect(plan.ended(start, success: false) == true)
    #expect(plan.next() == start)
    plan.setScans([], isNew: false)
    #expect(plan.ended(start, success: false) == false)
    #expect(plan.next() == nil)
  }
}

@Suite("Watching links of the host")
struct LinkWatchTests {
  private static let lamp = BluetoothUUID(UInt16(0xFFF0))
  private let peer = DeviceAddress(value: 1, kind: .public).peer

  @Test("each link is told once, by service or by peer", arguments: [true, false])
  func once(byService: Bool) {
    var watch = LinkWatch(
      byService ? LinkFilter(services: [Self.lamp]) : LinkFilter(peers: [peer]), present: [])
    #expect(watch.linkIsUp(peer, services: byService ? [Self.lamp] : []) == true)
    #expect(watch.linkIsUp(peer, services: [Self.lamp]) == false)
    #expect(watch.linkHasEnded(peer, services: [Self.lamp]) == true)
    #expect(watch.linkHasEnded(peer, services: [Self.lamp]) == false)
  }

  @Test("a link counts once the services are known, one that was there when it ends")
  func late() {
    var watch = LinkWatch(LinkFilter(services: [Self.lamp]), present: [])
    #expect(watch.linkIsUp(peer, services: []) == false)
    #expect(watch.linkIsUp(peer, services: [Self.lamp]) == true)
    var other = LinkWatch(LinkFilter(services: [Self.lamp]), present: [peer])
    #expect(other.linkIsUp(peer, services: [Self.lamp]) == false)
    #expect(other.linkHasEnded(peer, services: [Self.lamp]) == true)
  }
}
