import Foundation
import Testing

@testable import BulkTransfer

/// Octets that do not repeat.
func image(_ count: Int, seed: UInt64 = 7) -> Data {
  var random = SeededGenerator(seed)
  return random.bytes(count)
}

/// Runs a schedule that has to end verified, and checks everything that the world checks.
@discardableResult
func expectVerified(_ schedule: Schedule, _ location: SourceLocation = #_sourceLocation) throws -> HaulWorld {
  let world = try HaulWorld(schedule)
  let outcome = world.run()
  #expect(outcome == .verified, sourceLocation: location)
  #expect(world.violations.isEmpty, sourceLocation: location)
  for (index, contents) in schedule.objects.enumerated() {
    #expect(world.flash.contents(of: "image-\(index).bin") == contents, sourceLocation: location)
  }
  return world
}

@Suite("Transfers over an honest link", .timeLimit(.minutes(30)))
struct TransferTests {
  @Test(
    "Every size arrives whole, the last packet short and not padded",
    arguments: [1, 19, 20, 21] + Array(239...245) + [4095, 4096, 4097, 8191, 8193, 12288],
    [20, 243, 244, 245, 512])
  func sizes(size: Int, limit: Int) throws {
    for carrier in [CarrierKind.gatt, .l2cap] {
      var schedule = Schedule()
      schedule.objects = [image(size)]
      schedule.carrier = carrier
      schedule.limit = limit
      let world = try expectVerified(schedule)
      let checks = 4 * ((size + 4095) / 4096)
      let expected = size + checks
      #expect(world.streamOctets == expected)
      #expect(world.counts.progress.last?.confirmedBytes == UInt64(size))
      #expect(world.counts.progress.last?.fraction == 1)
    }
  }

  @Test("The tail of a large image is its own, with partial last packets and segments")
  func tail() throws {
    var schedule = Schedule()
    schedule.objects = [image(710_640)]
    schedule.limit = 500
    schedule.configuration.segmentPower = 14
    let world = try expectVerified(schedule)
    let stored = try #require(world.flash.contents(of: "image-0.bin"))
    #expect(stored.suffix(1000) == schedule.objects[0].suffix(1000))
    #expect(stored.suffix(140).contains { $0 != 0 })
  }

  @Test("Several objects go one after another in one session", arguments: [CarrierKind.gatt, .l2cap])
  func several(carrier: CarrierKind) throws {
    var schedule = Schedule()
    schedule.carrier = carrier
    schedule.objects = [image(5000, seed: 1), image(1, seed: 2), image(20_000, seed: 3)]
    let world = try expectVerified(schedule)
    #expect(world.attempts == 1)
    #expect(world.counts.progress.map(\.objectIndex).max() == 2)
  }

  @Test("Two objects with the same contents and different names are both stored")
  func twins() throws {
    var schedule = Schedule()
    schedule.objects = [image(9000), image(9000)]
    try expectVerified(schedule)
  }

  @Test("What is there already is verified without sending it again")
  func alreadyThere() throws {
    var schedule = Schedule()
    schedule.objects = [image(30_000)]
    let first = try expectVerified(schedule)
    let sent = first.counts.dataPackets.count
    first.outcome = nil
    first.sender = nil
    first.verifiedObjects = 0
    first.dropLink()
    first.connect()
    #expect(first.run() == .verified)
    #expect(first.counts.dataPackets.count == sent)
    #expect(first.counts.resumedFrom == [0, 30_000])
    #expect(first.violations.isEmpty)
  }

  @Test("Segment size, receipt interval, window and packet limit show in the traffic")
  func settings() throws {
    var schedule = Schedule()
    schedule.objects = [image(100_000)]
    schedule.latency = 20_000
    schedule.hostDepth = 10_000
    func run(_ change: (inout HaulConfiguration) -> Void) throws -> HaulWorld {
      var changed = schedule
      change(&changed.configuration)
      return try expectVerified(changed)
    }
    let plain = try run { _ in }
    let large = try run { $0.segmentPower = 16 }
    let savedChecks = 23
    #expect(plain.streamOctets == large.streamOctets + 4 * savedChecks)
    let rare = try run { $0.receiptInterval = 32768 }
    #expect(rare.counts.controlOctets < plain.counts.controlOctets / 2)
    let short = try run { $0.packetLimit = 100 }
    #expect(short.counts.dataPackets.max() == 100)
    let narrow = try run {
      $0.minimumWindow = 8192
      $0.initialWindow = 8192
      $0.maximumWindow = 8192
    }
    #expect(narrow.now > plain.now)
  }

  @Test(
    "Control and framing take less than one percent, also where the link is slow",
    arguments: [CarrierKind.gatt, .l2cap], [2000, 8000, 170_000])
  func overhead(carrier: CarrierKind, bytesPerSecond: Int) throws {
    let size = 262_144
    var schedule = Schedule()
    schedule.carrier = carrier
    schedule.limit = carrier == .gatt ? 244 : 2048
    schedule.bytesPerSecond = bytesPerSecond
    schedule.objects = [image(size)]
    schedule.receiver.largestSegmentPower = 12
    let world = try expectVerified(schedule)
    let overhead = world.counts.dataOctets - size + world.counts.controlOctets
    let limit = size / 100
    #expect(overhead < limit)
    #expect(overhead > 0)
  }

  @Test("A receiver with a buffer of one small segment still gets everything", arguments: [20, 244])
  func smallReceiver(limit: Int) throws {
    var schedule = Schedule()
    schedule.objects = [image(50_000)]
    schedule.limit = limit
    schedule.receiver.buffer = 4096
    schedule.flash.eraseTime = .milliseconds(85)
    schedule.flash.writeRate = 100_000
    schedule.configuration.segmentPower = 16
    schedule.configuration.receiptInterval = 65536
    schedule.configuration.maximumWindow = 1 << 18
    let world = try expectVerified(schedule)
    #expect(world.counts.peakBuffer <= 4096)
    #expect(world.counts.losses == 0)
    // No stall that only a QUERY has ended: erasing takes 12 x 85 ms, the air 0.5 s.
    #expect(world.now < 3_500_000)
  }

  @Test("In connection events of 30 ms at 2M the air is used", arguments: [CarrierKind.gatt, .l2cap])
  func goodput(carrier: CarrierKind) throws {
    var schedule = Schedule()
    let size = 1 << 20
    schedule.carrier = carrier
    schedule.objects = [image(size)]
    schedule.limit = carrier == .gatt ? 244 : 4096
    // 21 exchanges of 1392 us fit into an event of 30 ms; the host holds two events' worth.
    schedule.connectionEvents = (30_000, 21)
    schedule.hostDepth = carrier == .gatt ? 42 : 3
    schedule.latency = 1000
    let world = try expectVerified(schedule)
    let ceiling = Double(21 * 244) / 0.030
    let start = try #require(world.counts.firstData)
    let goodput = Double(size) / (Double(world.counts.lastConfirmed - start) / 1_000_000)
    #expect(goodput / ceiling >= 0.97)
    #expect(goodput <= ceiling)
  }

  @Test(
    "A window of two receipts keeps moving, also where a packet could be as long as it",
    arguments: [(512, 256), (700, 350), (600, 256)], [512, 244])
  func narrowWindow(sizes: (window: Int, receipts: Int), limit: Int) throws {
    for coding in [nil, Schedule.Coding()] {
      var schedule = Schedule()
      schedule.objects = [image(50_000)]
      schedule.coding = coding
      schedule.limit = limit
      schedule.configuration.receiptInterval = sizes.receipts
      schedule.configuration.initialWindow = sizes.window
      schedule.configuration.minimumWindow = sizes.window
      schedule.configuration.maximumWindow = sizes.window
      let world = try expectVerified(schedule)
      #expect(world.counts.losses == 0)
      // A packet or two for each round trip of 15 to 50 ms, and not a second for any of them.
      #expect(world.now < 50_000 / 256 * 60_000 + 1_000_000)
    }
  }
}
