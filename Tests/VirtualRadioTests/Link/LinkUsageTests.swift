import Foundation
import Radio
import Testing

@testable import VirtualRadio

@Suite("What a link does with its time") struct LinkUsageTests {
  private let packet = [UInt8](repeating: 1, count: 251)

  @Test("the three times are the whole time, at any moment", arguments: 1...20)
  func isWhole(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let link = LinkParameters(
      connectionInterval: .milliseconds(30), packetErrorRate: Double.random(in: 0...0.3, using: &generator),
      supervisionTimeout: .seconds(32))
    var rig = LinkRig(link, seed: seed)
    var before = LinkUsage()
    for step in 1...40 {
      let frames = LinkRig.frames(Int.random(in: 0...30, using: &generator), seed: seed)
      rig.backlog = [.central: frames[...], .peripheral: frames.prefix(3)]
      rig.run(until: .microseconds(Int.random(in: 1000...90_000, using: &generator)) + rig.now)
      let usage = rig.link.usage(.central, now: rig.now)
      #expect(usage.air + usage.interval + usage.empty == rig.now, "step \(step)")
      let since = usage - before
      #expect(since.air >= .zero && since.interval >= .zero && since.empty >= .zero)
      before = usage
    }
  }

  @Test("data that waits for an event waits for the interval, and an event is as long as its packets")
  func oneFrame() {
    var rig = LinkRig(LinkParameters(connectionInterval: .milliseconds(30)))
    _ = rig.send(packet, from: .central)
    rig.run()
    rig.now = .milliseconds(40)
    _ = rig.send(packet, from: .central)
    rig.run()
    rig.now = .milliseconds(100)
    let usage = rig.link.usage(.central, now: rig.now)
    // 1048 us of data, a pause and an empty answer of 44 us, twice; from 40 ms to 60 ms it waited.
    #expect(usage.air == .microseconds(2 * (1048 + 150 + 44)))
    #expect(usage.interval == .milliseconds(20))
    #expect(usage.empty == .milliseconds(80) - usage.air)
    #expect(usage.packets == 2 && usage.octets == 502 && usage.repetitions == 0)
    // What the other side had to send: nothing.
    #expect(rig.link.usage(.peripheral, now: rig.now).empty == rig.now)
  }

  @Test("a full queue leaves no time empty, and what the air has is what the ceiling says")
  func fullQueue() {
    let link = LinkParameters(connectionInterval: .milliseconds(30))
    var rig = LinkRig(link)
    rig.backlog[.central] = [[UInt8]](repeating: packet, count: 3000)[...]
    rig.run(until: .seconds(3))
    let usage = rig.link.usage(.central, now: rig.now)
    #expect(usage.empty == .zero)
    let idle = usage.interval / rig.now
    // The last pause of an event, 150 us in 30 ms, is waiting here and part of an exchange there.
    let expected = LinkCeiling(link).flow(of: .commands).idleShare + 0.005
    #expect(abs(idle - expected) < 0.001)
  }

  @Test("packets that are lost are sent again, and counted", arguments: [0.05, 0.2])
  func repetitions(_ rate: Double) {
    var rig = LinkRig(LinkParameters(packetErrorRate: rate, supervisionTimeout: .seconds(32)), seed: 3)
    rig.backlog[.central] = [[UInt8]](repeating: packet, count: 4000)[...]
    rig.run()
    let usage = rig.link.usage(.central, now: rig.now)
    #expect(usage.packets - usage.repetitions == 4000)
    #expect(usage.octets == usage.packets * 251)
    // A packet comes again where it or its acknowledgement was lost.
    let share = Double(usage.repetitions) / Double(usage.packets)
    #expect(abs(share - (1 - (1 - rate) * (1 - rate))) < 0.03, "\(share)")
  }

  @Test("an air sums up all links between two radios, whichever was the central")
  func sums() throws {
    let rig = AirRig()
    let values = try rig.connectAndFind()
    try rig.runToRest()
    #expect(rig.air.usage(from: rig.phone, to: rig.device).packets > 0)
    let before = rig.air.usage(from: rig.phone, to: rig.device)
    try rig.ask(.write(values.handle, Data([1, 2, 3])))
    let after = rig.air.usage(from: rig.phone, to: rig.device)
    #expect((after - before).packets == 1)
    rig.central.cancelConnection(rig.peer)
    try rig.runToRest()
    #expect(rig.air.usage(from: rig.phone, to: rig.device).packets >= after.packets)
    _ = try rig.connectAndFind()
    #expect(rig.air.usage(from: rig.phone, to: rig.device).packets > after.packets)
    #expect(rig.air.usage(from: rig.device, to: rig.phone).packets > 0)
  }
}
