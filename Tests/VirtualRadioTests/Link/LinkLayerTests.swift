import Testing

@testable import VirtualRadio

@Suite("Link layer") struct LinkLayerTests {
  @Test("both ways, any loss: each frame arrives once, whole and in order", arguments: 1...40)
  func deliversOnceInOrder(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let parameters = LinkParameters(
      phy: PHY.allCases.randomElement(using: &generator) ?? .le1M,
      dataLength: Int.random(in: 27...100, using: &generator),
      connectionInterval: .microseconds(1250 * Int.random(in: 6...40, using: &generator)),
      packetsPerEvent: Bool.random(using: &generator) ? Int.random(in: 1...8, using: &generator) : nil,
      isEncrypted: Bool.random(using: &generator),
      packetErrorRate: Double.random(in: 0...0.5, using: &generator), supervisionTimeout: .seconds(32))
    var rig = LinkRig(parameters, seed: seed)
    let down = LinkRig.frames(60, seed: seed)
    let up = LinkRig.frames(60, seed: seed &+ 1000)
    rig.backlog = [.central: down[...], .peripheral: up[...]]
    rig.run()
    #expect(rig.received[.peripheral] == down)
    #expect(rig.received[.central] == up)
    #expect(rig.completed == [.central: 60, .peripheral: 60])
    #expect(rig.end == nil)
    for instants in rig.instants.values { #expect(instants == instants.sorted()) }
  }

  @Test("changes of PHY, data length and interval in mid-frame lose nothing", arguments: 1...10)
  func parametersMayChange(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var rig = LinkRig(LinkParameters(packetErrorRate: 0.1, supervisionTimeout: .seconds(32)), seed: seed)
    let frames = LinkRig.frames(400, seed: seed)
    rig.backlog[.central] = frames[...]
    for step in 1...60 {
      rig.run(until: .milliseconds(17 * step))
      let parameters = LinkParameters(
        phy: PHY.allCases.randomElement(using: &generator) ?? .le1M,
        dataLength: Int.random(in: 27...251, using: &generator),
        connectionInterval: .microseconds(1250 * Int.random(in: 16...40, using: &generator)),
        packetErrorRate: 0.1, supervisionTimeout: .seconds(32))
      rig.link.update(parameters, now: rig.now)
    }
    rig.run()
    #expect(rig.received[.peripheral] == frames)
    #expect(rig.completed[.central] == 400)
  }

  @Test("a request and its answer take two connection intervals", arguments: [7.5, 15, 30, 50])
  func requestAndResponse(_ milliseconds: Double) {
    let interval = Duration.microseconds(Int(milliseconds * 1000))
    var rig = LinkRig(LinkParameters(connectionInterval: interval))
    var requests = 0
    while rig.now < interval * 200 {
      guard rig.send([UInt8](repeating: 1, count: 251), from: .central) else { break }
      requests += 1
      let (before, answers) = (rig.received[.peripheral]?.count, rig.received[.central]?.count)
      while rig.received[.peripheral]?.count == before, let next = rig.link.nextWakeup {
        rig.run(until: next)
      }
      _ = rig.send([4, 0, 4, 0, 0x13], from: .peripheral)
      while rig.received[.central]?.count == answers, let next = rig.link.nextWakeup { rig.run(until: next) }
    }
    #expect(abs(requests - 100) <= 1)
  }

  @Test("full packets both ways share the event: 20 pairs of 251 octets in 50 ms at 2M")
  func bothDirections() {
    var rig = LinkRig(LinkParameters(connectionInterval: .milliseconds(50)))
    let frame = [UInt8](repeating: 7, count: 251)
    let frames = [[UInt8]](repeating: frame, count: 2000)
    rig.backlog = [.central: frames[...], .peripheral: frames[...]]
    rig.run(until: .milliseconds(50 * 20))
    #expect(rig.received[.peripheral]?.count == 400)
    #expect(rig.received[.central]?.count == 400)
  }

  @Test("where two full packets never fit an interval together, the sides take turns")
  func sidesTakeTurns() {
    // S2: 4478 us for each packet, 7.5 ms in all.
    var rig = LinkRig(LinkParameters(phy: .codedS2, connectionInterval: .microseconds(7500)))
    let frames = [[UInt8]](repeating: [UInt8](repeating: 7, count: 251), count: 100)
    rig.backlog = [.central: frames[...], .peripheral: frames[...]]
    rig.run(until: .microseconds(7500 * 100))
    #expect(rig.received[.peripheral]?.count == 50)
    #expect(rig.received[.central]?.count == 50)
  }

  @Test("an idle link has nothing to do, and its events stay on the grid of the interval")
  func idleLink() {
    var rig = LinkRig(LinkParameters(connectionInterval: .milliseconds(30)))
    #expect(rig.link.nextWakeup == nil)
    _ = rig.send([1, 2, 3, 4], from: .central)
    rig.run()
    #expect(rig.link.nextWakeup == nil)
    rig.now = .milliseconds(30_001)
    _ = rig.send([1, 2, 3, 4], from: .peripheral)
    #expect(rig.link.nextWakeup == .milliseconds(30_030))
    rig.run()
    #expect(rig.instants[.central] == [.milliseconds(30_030) + .microseconds(44 + 150 + 60)])
    #expect(rig.end == nil)
  }

  @Test("a frame that is queued while an event runs waits for the next event")
  func midEventFrameWaits() {
    var rig = LinkRig(LinkParameters(connectionInterval: .milliseconds(30)))
    _ = rig.send([UInt8](repeating: 1, count: 251), from: .central)
    var outputs: [LinkOutput] = []
    rig.link.advance(to: .zero, into: &outputs)
    #expect(outputs.isEmpty)
    rig.now = .microseconds(10)
    _ = rig.send([9, 9, 9, 9], from: .central)
    rig.run()
    #expect(
      rig.instants[.peripheral] == [.microseconds(1048), .milliseconds(30) + .microseconds(44 + 4 * 4)])
  }

  @Test("a side that vanishes ends the link after the timeout", arguments: [LinkSide.central, .peripheral])
  func supervisionTimeout(_ side: LinkSide) {
    var rig = LinkRig(LinkParameters(connectionInterval: .milliseconds(30), supervisionTimeout: .seconds(2)))
    rig.now = .seconds(10)
    rig.link.setSilent(side, true, now: rig.now)
    _ = rig.send([1, 2, 3, 4], from: .central)
    rig.run()
    #expect(rig.end?.reason == .supervisionTimeout)
    let end = rig.end?.at ?? .zero
    #expect(end > .seconds(12) - .milliseconds(31) && end <= .seconds(12))
    #expect(rig.received[.peripheral] == [])
    #expect(rig.link.nextWakeup == nil)
    let isTaken = rig.send([1, 2, 3, 4], from: .central)
    #expect(!isTaken)
    #expect(!rig.link.hasRoom(.central))
  }

  @Test("a side that comes back in time loses nothing")
  func comesBack() {
    var rig = LinkRig(LinkParameters(supervisionTimeout: .seconds(2)))
    let frames = LinkRig.frames(50, seed: 3)
    rig.backlog[.central] = frames[...]
    rig.run(until: .milliseconds(1))
    rig.link.setSilent(.peripheral, true, now: rig.now)
    rig.run(until: .milliseconds(1500))
    rig.link.setSilent(.peripheral, false, now: rig.now)
    rig.run()
    #expect(rig.received[.peripheral] == frames)
    #expect(rig.end == nil)
  }

  @Test("noise that lets nothing through ends the link")
  func noise() {
    var rig = LinkRig(LinkParameters(packetErrorRate: 0.99, supervisionTimeout: .milliseconds(100)), seed: 5)
    _ = rig.send([UInt8](repeating: 1, count: 200), from: .central)
    rig.run()
    #expect(rig.end?.reason == .supervisionTimeout)
  }

  @Test(
    "a cut inside a frame delivers what came before and not that frame", arguments: [4, 200, 251, 252, 521])
  func cutInsideFrame(_ length: Int) {
    var rig = LinkRig()
    _ = rig.send([1, 2, 3, 4], from: .central)
    rig.run()
    rig.link.cutInsideNextFrame(from: .central)
    _ = rig.send([UInt8](repeating: 1, count: length), from: .central)
    _ = rig.send([5, 6, 7, 8], from: .central)
    rig.run()
    #expect(rig.received[.peripheral] == [[1, 2, 3, 4]])
    #expect(rig.completed[.central] == 1)
    #expect(rig.end?.reason == .supervisionTimeout)
  }

  @Test("the end in order comes with the next event", arguments: [LinkSide.central, .peripheral])
  func terminates(_ side: LinkSide) {
    var rig = LinkRig(LinkParameters(connectionInterval: .milliseconds(30)))
    rig.now = .milliseconds(100)
    rig.link.terminate(by: side, now: rig.now)
    rig.run()
    #expect(rig.end?.reason == .terminated(by: side))
    #expect(rig.end?.at == .milliseconds(120))
  }

  @Test("the end in order cannot reach a side that has vanished")
  func terminateUnheard() {
    var rig = LinkRig()
    rig.link.setSilent(.peripheral, true, now: .zero)
    rig.link.terminate(by: .central, now: .zero)
    rig.run()
    #expect(rig.end?.reason == .supervisionTimeout)
  }

  @Test("the same seed gives the same run, another seed another")
  func isDeterministic() {
    func instants(_ seed: UInt64) -> [Duration]? {
      var rig = LinkRig(LinkParameters(packetErrorRate: 0.2, supervisionTimeout: .seconds(32)), seed: seed)
      rig.backlog[.central] = LinkRig.frames(100, seed: 1)[...]
      rig.run()
      return rig.instants[.peripheral]
    }
    #expect(instants(1) == instants(1))
    #expect(instants(1) != instants(2))
  }

  @Test("with loss the link layer keeps to the expected rate", arguments: [0.01, 0.05, 0.1, 0.3])
  func lossyCeiling(_ rate: Double) {
    let parameters = LinkParameters(packetErrorRate: rate, supervisionTimeout: .seconds(32))
    var rig = LinkRig(parameters, seed: 77)
    rig.backlog[.central] = [[UInt8]](repeating: [UInt8](repeating: 1, count: 251), count: 40_000)[...]
    rig.run(until: .seconds(36))
    let measured = Double((rig.received[.peripheral]?.count ?? 0) * 244) / 36
    let expected = LinkCeiling(parameters).writesWithoutResponse().sustained
    #expect(abs(measured / expected - 1) < 0.015)
  }
}
