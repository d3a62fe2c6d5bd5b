import Foundation
import Testing

@testable import BulkTransfer

@Suite("Transfers that go wrong on the way", .timeLimit(.minutes(30)))
struct RecoveryTests {
  @Test("One lost packet is found and repaired, and nothing more than its segments is sent again")
  func oneLostPacket() throws {
    var schedule = Schedule()
    schedule.objects = [image(487_696)]
    schedule.limit = 254
    schedule.lostPackets = [487_696 * 6 / 10 / 254]
    let world = try expectVerified(schedule)
    #expect(world.counts.losses == 1)
    #expect(world.counts.syncs == 2)
    let extra = world.streamOctets - 487_696
    #expect(extra < 40_000)
  }

  @Test("The very last packet may be lost, and the first", arguments: [0, 1, 2])
  func edges(which: Int) throws {
    var schedule = Schedule()
    schedule.objects = [image(10_000)]
    let packets = (10_000 + 12 + 243) / 244
    schedule.lostPackets = [[0], [packets - 1], [packets - 2, packets - 1]][which]
    let world = try expectVerified(schedule)
    #expect(world.counts.losses == 1)
    #expect(world.now < 5_000_000)
  }

  @Test("A packet with nothing but a check value may be lost")
  func lostCheck() throws {
    var schedule = Schedule()
    schedule.objects = [image(4096)]
    schedule.limit = 512
    schedule.lostPackets = [8]
    let world = try expectVerified(schedule)
    #expect(world.counts.dataPackets[8] == 4)
    #expect(world.counts.losses == 1)
  }

  @Test("After a cut the transfer goes on at the durable offset", arguments: [CarrierKind.gatt, .l2cap])
  func resume(carrier: CarrierKind) throws {
    var schedule = Schedule()
    schedule.carrier = carrier
    schedule.objects = [image(200_000)]
    schedule.incidents = [(1_000_000, .cut)]
    schedule.attempts = 2
    let world = try expectVerified(schedule)
    #expect(world.attempts == 2)
    let resumed = try #require(world.counts.resumedFrom.last)
    #expect(resumed > 60_000)
    #expect(world.streamOctets < 230_000)
  }

  @Test("A power cut at the receiver costs only what was not durable")
  func powerCut() throws {
    var schedule = Schedule()
    schedule.objects = [image(200_000)]
    schedule.incidents = [(1_000_000, .powerCut)]
    schedule.attempts = 2
    let world = try expectVerified(schedule)
    let resumed = try #require(world.counts.resumedFrom.last)
    #expect(resumed > 40_000 && resumed < 100_000)
  }

  @Test("A byte that is damaged in storage fails the whole object, although only the rest was sent again")
  func damagedBeforeResume() throws {
    var schedule = Schedule()
    schedule.objects = [image(40_000)]
    schedule.bytesPerSecond = 20_000
    schedule.receiver.syncBytes = 4096
    schedule.incidents = [(1_200_000, .cut), (1_300_000, .corruptStored(100))]
    schedule.attempts = 2
    let world = try HaulWorld(schedule)
    guard case .failed(let error) = world.run() else {
      Issue.record("it did not fail")
      return
    }
    #expect(error.code == .verificationFailed)
    #expect(error.message.contains("image-0.bin"))
    #expect(try #require(world.counts.resumedFrom.last) > 10_000)
    #expect(world.flash.names.isEmpty)
    // What was wrong is gone, so that the next transfer begins at 0.
    #expect(world.flash.durableOffset(of: world.outgoing[0].sha256) == nil)
    #expect(world.violations.isEmpty)
  }

  @Test("Pausing and resuming twenty times loses and doubles nothing", arguments: [CarrierKind.gatt, .l2cap])
  func pauses(carrier: CarrierKind) throws {
    var schedule = Schedule()
    schedule.carrier = carrier
    schedule.objects = [image(10_000)]
    schedule.bytesPerSecond = 10_000
    schedule.hostDepth = 12
    for index in 0..<20 {
      schedule.incidents.append((300_000 + index * 100_000, .pause))
      schedule.incidents.append((340_000 + index * 100_000, .resume))
    }
    let world = try expectVerified(schedule)
    #expect(world.counts.losses == 0)
    #expect(world.streamOctets == 10_012)
  }

  @Test("A long pause is kept alive and ends when the user wants")
  func longPause() throws {
    var schedule = Schedule()
    schedule.objects = [image(50_000)]
    schedule.incidents = [(300_000, .pause), (600_000_000, .resume)]
    let world = try expectVerified(schedule)
    #expect(world.attempts == 1)
    #expect(world.now > 600_000_000)
  }

  @Test("A peer that vanishes during a pause is noticed")
  func vanishedDuringPause() throws {
    var schedule = Schedule()
    schedule.objects = [image(50_000)]
    schedule.incidents = [(300_000, .pause), (400_000, .stuck(1_000_000_000))]
    let world = try HaulWorld(schedule)
    guard case .failed(let error) = world.run() else {
      Issue.record("it did not fail")
      return
    }
    #expect(error.code == .timedOut && error.isRetriable)
    #expect(world.now < 30_000_000)
  }

  @Test("A limit that grows after connecting is used at once", arguments: [0, 50_000, 500_000, 2_000_000])
  func growingLimit(at: Int) throws {
    for seed in 0..<10 {
      var schedule = Schedule()
      schedule.seed = UInt64(seed)
      schedule.objects = [image(100_000)]
      schedule.limit = 20
      schedule.bytesPerSecond = 40_000
      schedule.incidents = [(at, .limit(244))]
      let world = try expectVerified(schedule)
      let sizes = world.counts.dataPackets
      // Never a packet of the old size after the first of the new one, but for the ends of the stream.
      let first = sizes.firstIndex(where: { $0 > 20 }) ?? sizes.endIndex
      let short = sizes[first...].filter { $0 < 244 }
      #expect(short.count <= 2)
      #expect(sizes.contains(244))
    }
  }

  @Test("A limit that shrinks is respected at once")
  func shrinkingLimit() throws {
    var schedule = Schedule()
    schedule.objects = [image(60_000)]
    schedule.incidents = [(200_000, .limit(20)), (500_000, .limit(100))]
    try expectVerified(schedule)
  }

  @Test("A host that is not ready for two seconds after connecting only delays the start")
  func lateReady() throws {
    var schedule = Schedule()
    schedule.objects = [image(20_000)]
    schedule.incidents = [(0, .hostStall(2_000_000))]
    let world = try expectVerified(schedule)
    #expect(try #require(world.counts.firstData) < 2_500_000)
  }

  @Test("A host that never becomes ready ends in an error that says so")
  func neverReady() throws {
    var schedule = Schedule()
    schedule.objects = [image(20_000)]
    schedule.incidents = [(0, .hostStall(1_000_000_000))]
    let world = try HaulWorld(schedule)
    guard case .failed(let error) = world.run() else {
      Issue.record("it did not fail")
      return
    }
    #expect(error.code == .timedOut)
    #expect(world.now < 15_000_000)
  }

  @Test(
    "Ready signals that come late, twice or for nothing neither stall nor double anything", arguments: 0..<8)
  func readySignals(seed: Int) throws {
    var random = SeededGenerator(UInt64(seed))
    var schedule = Schedule()
    schedule.seed = UInt64(seed)
    schedule.objects = [image(40_000)]
    schedule.limit = 20
    schedule.hostDepth = random.pick(1...4)
    schedule.bytesPerSecond = 400_000
    let world = try HaulWorld(schedule)
    for _ in 0..<3000 { world.events.add(.hostReady, at: random.pick(0...400_000)) }
    #expect(world.run() == .verified)
    #expect(world.violations.isEmpty)
    #expect(world.streamOctets == 40_040)
    #expect(world.now < 1_500_000)
  }

  @Test("A file that changes while it is sent ends the transfer, and none of its changed part leaves")
  func changedFile() throws {
    var schedule = Schedule()
    schedule.objects = [image(100_000)]
    schedule.checksumSegment = 8192
    var contents = schedule.objects
    contents[0][70_000] ^= 1
    schedule.changedObjects = (400_000, contents)
    let world = try HaulWorld(schedule)
    guard case .failed(let error) = world.run() else {
      Issue.record("it did not fail")
      return
    }
    world.settle(for: 10_000_000)
    #expect(error.code == .unusableFile)
    #expect(error.message.contains("65536"))
    #expect(!error.isRetriable)
    #expect(world.flash.names.isEmpty)
    // The stream stopped before the segment that has changed.
    #expect(try #require(world.flash.durableOffset(of: world.outgoing[0].sha256)) <= 65_536)
    #expect(world.violations.isEmpty)
  }

  @Test("A file that becomes shorter is an error that says where it ended")
  func shortenedFile() throws {
    var schedule = Schedule()
    schedule.objects = [image(150_000)]
    schedule.changedObjects = (200_000, [schedule.objects[0].prefix(90_000)])
    let world = try HaulWorld(schedule)
    guard case .failed(let error) = world.run() else {
      Issue.record("it did not fail")
      return
    }
    #expect(error.code == .unusableFile)
    #expect(error.message.contains("90000"))
  }

  @Test("Cancelling leaves what is durable, and the next transfer goes on there")
  func cancel() throws {
    var schedule = Schedule()
    schedule.objects = [image(200_000)]
    schedule.incidents = [(1_000_000, .cancel)]
    let world = try HaulWorld(schedule)
    guard case .failed(let error) = world.run() else {
      Issue.record("it did not fail")
      return
    }
    #expect(error.code == .cancelled)
    #expect(world.now < 1_300_000)
    world.settle(for: 5_000_000)
    let durable = try #require(world.flash.durableOffset(of: world.outgoing[0].sha256))
    #expect(durable > 50_000)
    world.outcome = nil
    world.connect()
    #expect(world.run() == .verified)
    #expect(world.counts.resumedFrom.last == durable)
  }

  @Test("Cancelling towards a peer that no longer answers does not take long")
  func cancelUnanswered() throws {
    var schedule = Schedule()
    schedule.objects = [image(200_000)]
    schedule.incidents = [(900_000, .stuck(1_000_000_000)), (1_000_000, .cancel)]
    let world = try HaulWorld(schedule)
    guard case .failed(let error) = world.run() else {
      Issue.record("it did not fail")
      return
    }
    #expect(error.code == .cancelled)
    #expect(world.now <= 3_000_000)
  }

  @Test("Flash that erases for long before it takes anything is waited for, however short the idle limit")
  func slowErase() throws {
    var schedule = Schedule()
    schedule.objects = [image(100_000)]
    schedule.configuration.idleLimit = .seconds(3)
    schedule.flash.erasesAtOpen = true
    schedule.flash.eraseTime = .seconds(10)
    let world = try expectVerified(schedule)
    #expect(world.now > 250_000_000)
    #expect(world.attempts == 1)
    let states = world.counts.progress
    #expect(states.contains { $0.phase == .prepare && $0.busySeconds != nil })
    #expect(try #require(states.last).elapsed.prepare > .seconds(240))
    #expect(try #require(states.last).elapsed.transfer < .seconds(3))
  }

  @Test(
    "A device that stores nothing more is an error and no success",
    arguments: [SimulatedFlash.Occurrence.always])
  func brokenFlash(occurrence: SimulatedFlash.Occurrence) throws {
    var schedule = Schedule()
    schedule.objects = [image(50_000)]
    schedule.attempts = 3
    schedule.prepareFlash = { $0.failWrites(at: 30_000, occurrence) }
    let world = try HaulWorld(schedule)
    guard case .failed(let error) = world.run() else {
      Issue.record("it did not fail")
      return
    }
    #expect(error.code == .deviceStorage)
    #expect(world.flash.names.isEmpty)
  }

  @Test("A write that fails once is repaired by the next session")
  func oneFailedWrite() throws {
    var schedule = Schedule()
    schedule.objects = [image(50_000)]
    schedule.attempts = 3
    schedule.prepareFlash = { $0.failWrites(at: 30_000, .once) }
    let world = try expectVerified(schedule)
    #expect(world.attempts == 2)
    #expect(try #require(world.counts.resumedFrom.last) > 0)
  }

  @Test(
    "However many packets are lost, it ends verified, and what is sent again is bounded by what the losses cost",
    arguments: [0.01, 0.03, 0.1], 0..<8)
  func heavyLoss(loss: Double, seed: Int) throws {
    var schedule = Schedule()
    schedule.seed = UInt64(seed)
    schedule.objects = [image(60_000)]
    schedule.faults.dataLoss = loss
    // A session gives up where a segment does not arrive in many attempts; the next one goes on at the last good one.
    schedule.attempts = 20
    schedule.timeLimit = 600_000_000
    let world = try expectVerified(schedule)
    // A segment of 17 packets arrives with the chance of all of them; each failure costs what was in flight behind it and itself.
    let segment = 4096.0
    let failures = pow(1 - loss, -17) - 1
    let cost = Double(schedule.configuration.initialWindow) + segment
    let bound = 60_000 + 60_000 / segment * failures * cost
    #expect(Double(world.counts.dataOctets) <= bound + 2 * cost, "\(world.counts.dataOctets) octets")
    // And something was sent again, or the link was not what it claims to be.
    #expect(world.counts.losses > 0 && world.counts.dataOctets > 61_000)
    let durable = world.counts.progress.map(\.confirmedBytes)
    #expect(durable.last == 60_000)
  }

  @Test("Losing every tenth control message costs time and nothing else")
  func lostReplies() throws {
    var schedule = Schedule()
    schedule.objects = [image(200_000)]
    schedule.faults.controlLoss = 0.1
    let world = try expectVerified(schedule)
    #expect(world.attempts == 1)
    #expect(world.now < 30_000_000)
  }
}
