import Foundation
import Testing

@testable import BulkTransfer

@Suite("Coded transfers", .timeLimit(.minutes(30)))
struct CodedTransferTests {
  /// A schedule with one object that compresses.
  static func schedule(_ size: Int, seed: UInt64 = 3) -> Schedule {
    var random = SeededGenerator(seed)
    var schedule = Schedule()
    schedule.objects = [mixture(size, &random)]
    schedule.coding = Schedule.Coding()
    return schedule
  }

  static func uncoded(_ schedule: Schedule) throws -> HaulWorld {
    var plain = schedule
    plain.coding = nil
    return try expectVerified(plain)
  }

  @Test(
    "Every size arrives whole, in fewer octets where it is worth it", arguments: [CarrierKind.gatt, .l2cap],
    [1, 2, 20, 4095, 4096, 4097, 65_535, 65_536, 65_537, 300_000])
  func sizes(carrier: CarrierKind, size: Int) throws {
    var schedule = Self.schedule(size)
    schedule.carrier = carrier
    let world = try expectVerified(schedule)
    #expect(world.counts.accepts.map(\.coding) == [.coded(proof: nil)])
    #expect(world.counts.progress.last?.confirmedBytes == UInt64(size))
    #expect(world.counts.progress.last?.streamBytes == UInt64(world.streamOctets))
    let plain = try Self.uncoded(schedule).streamOctets
    if size >= 65_535 { #expect(world.streamOctets < plain * 2 / 3) }
    #expect(world.streamOctets <= plain + 3)
  }

  @Test(
    "What does not shrink travels as it is: at most a thousandth and a length more",
    arguments: [1, 100, 10_000, 65_536, 200_000], [nil, UInt8(12)])
  func noise(size: Int, power: UInt8?) throws {
    var schedule = Schedule()
    schedule.objects = [image(size)]
    schedule.coding = Schedule.Coding()
    schedule.configuration.codedSegmentPower = power
    let coded = try expectVerified(schedule).streamOctets
    let plain = try Self.uncoded(schedule).streamOctets
    #expect(coded <= plain + max(3, plain / 1000))
  }

  @Test("A megabyte of zeros is a few frames")
  func zeros() throws {
    var schedule = Schedule()
    schedule.objects = [Data(count: 1_000_000)]
    schedule.coding = Schedule.Coding()
    let world = try expectVerified(schedule)
    #expect(world.streamOctets < 1000)
    #expect(world.counts.peakBuffer <= world.receiver.configuration.buffer)
  }

  @Test("A receiver that decodes nothing gets what it always got")
  func plainReceiver() throws {
    var schedule = Self.schedule(100_000)
    schedule.receiver.decodes = false
    let world = try expectVerified(schedule)
    #expect(world.streamOctets == (try Self.uncoded(schedule)).streamOctets)
    #expect(world.counts.offers.allSatisfy { $0.extensions.isEmpty })
    #expect(world.counts.accepts.map(\.coding) == [nil])
  }

  @Test("A small receiver decodes within its buffer, without a stall")
  func smallReceiver() throws {
    var schedule = Self.schedule(200_000)
    schedule.receiver.buffer = 4096
    let world = try expectVerified(schedule)
    #expect(world.counts.peakBuffer <= 4096)
    #expect(world.counts.losses == 0)
    // Each of the 49 segments waits for the one before to be stored: two latencies, and no time limit.
    #expect(world.now < 49 * 60_000 + 3_000_000)
  }

  @Test("A slow flash behind a coded stream holds back the sender and loses nothing", arguments: [16, 18])
  func slowFlash(power: UInt8) throws {
    var schedule = Self.schedule(400_000)
    schedule.receiver.buffer = 1 << 18
    schedule.flash.writeRate = 50_000
    schedule.configuration.codedSegmentPower = power
    let world = try expectVerified(schedule)
    #expect(world.counts.losses == 0)
    #expect(world.counts.peakBuffer <= 1 << 18)
    // 8 s for the flash; what is beyond is not a second for each segment.
    #expect(world.now < 11_000_000)
  }

  @Test("The window counts what is on the air", arguments: [8192, 16_384])
  func window(size: Int) throws {
    var schedule = Self.schedule(300_000)
    schedule.configuration.initialWindow = size
    schedule.configuration.minimumWindow = size
    schedule.configuration.maximumWindow = size
    schedule.latency = 100_000
    schedule.hostDepth = 10_000
    // The world checks that no more is in flight.
    let world = try expectVerified(schedule)
    #expect(world.counts.losses == 0)
  }

  @Test(
    "Rates count octets of the object over the time in which octets moved",
    arguments: [CarrierKind.gatt, .l2cap])
  func rates(carrier: CarrierKind) throws {
    var schedule = Self.schedule(300_000)
    schedule.carrier = carrier
    schedule.bytesPerSecond = 10_000
    let world = try expectVerified(schedule)
    let last = try #require(world.counts.progress.last)
    let average = try #require(last.averageBytesPerSecond)
    let moved = Double(world.streamOctets) / 10_000
    #expect(abs(average * moved / 300_000 - 1) < 0.1)
    #expect(average > 12_000)
    // Not done before the receiver has everything.
    #expect(Double(world.now) / 1_000_000 > moved)
  }

  // MARK: Loss and resumption

  @Test(
    "What is lost in the third segment and in the last is sent again, and the rest of the stream is not touched"
  )
  func losses() throws {
    var schedule = Self.schedule(300_000)
    let honest = try expectVerified(schedule)
    let packets = honest.counts.dataPackets.count
    schedule.lostPackets = [packets / 2, packets - 1]
    let world = try expectVerified(schedule)
    #expect(world.counts.losses >= 2)
    let repeated = world.streamOctets - honest.streamOctets
    let segment = try largestSegment(schedule.objects[0])
    // Each loss costs its segment, and what was on its way before the receiver's word of it came: some 60 ms, and the host's queue.
    #expect(repeated > 0 && repeated <= 2 * (segment + 16_384))
  }

  /// Octets of the largest segment of 64 KiB, coded, with length and check.
  private func largestSegment(_ object: Data) throws -> Int {
    let encoder = SegmentEncoder()
    var most = 0
    for start in stride(from: 0, to: object.count, by: 65_536) {
      let segment = object.dropFirst(start).prefix(65_536)
      most = max(most, (try encoder.encode(segment)?.count ?? segment.count) + 7)
    }
    return most
  }

  @Test(
    "A transfer that is cut goes on at the border of a segment, coded or not",
    arguments: [(true, true), (true, false), (false, true)], [CarrierKind.gatt, .l2cap])
  func resumption(codings: (before: Bool, after: Bool), carrier: CarrierKind) throws {
    var schedule = Self.schedule(400_000)
    schedule.carrier = carrier
    schedule.receiver.syncBytes = 1
    schedule.attempts = 1
    let whole = try expectVerified(schedule)
    schedule.incidents = [(whole.counts.lastConfirmed / 2, .cut)]
    let coding = schedule.coding
    schedule.coding = codings.before ? coding : nil
    let first = try HaulWorld(schedule)
    guard case .failed = first.run() else {
      Issue.record("it was not cut")
      return
    }
    first.settle(for: 5_000_000)
    schedule.coding = codings.after ? coding : nil
    schedule.incidents = []
    let again = try HaulWorld(schedule, flash: first.flash)
    #expect(again.run() == .verified)
    #expect(again.violations.isEmpty)
    let offset = try #require(again.counts.resumedFrom.first)
    let border = codings.before ? 65_536 : 4096
    #expect(offset > 0 && offset % UInt64(border) == 0)
    #expect(again.flash.contents(of: "image-0.bin") == schedule.objects[0])
  }

  @Test("A frame that cannot be decoded costs the coding and not the transfer", arguments: [0, 1, 3])
  func undecodable(bad: Int) throws {
    var schedule = Self.schedule(300_000)
    schedule.receiver.syncBytes = 1
    let real = SegmentEncoder()
    nonisolated(unsafe) var count = 0
    schedule.coding?.encode = { _, segment, _ throws(TransferError) in
      defer { unsafe count += 1 }
      if unsafe count == bad { return Data(repeating: 0xA5, count: 100) }
      return try real.encode(segment)
    }
    let world = try expectVerified(schedule)
    #expect(world.counts.accepts.map(\.coding) == [.coded(proof: nil), nil])
    #expect(
      world.counts.events.contains {
        if case .objectFailed(_, let error) = $0 { error.code == .undecodable } else { false }
      })
    // What was durable before it is not sent again.
    let offset = try #require(world.counts.resumedFrom.last)
    #expect(offset % 65_536 == 0 && offset <= UInt64(bad) * 65_536)
    if bad == 3 { #expect(offset > 0) }
  }

  // MARK: Bases

  /// An image of which the receiver has an older version.
  static func update(_ size: Int, seed: UInt64 = 5) -> Schedule {
    var schedule = schedule(size, seed: seed)
    var random = SeededGenerator(seed)
    schedule.coding?.base = edited(schedule.objects[0], &random)
    return schedule
  }

  @Test(
    "With a base only what changed travels: as one frame of the best level has it, and little more",
    arguments: [CarrierKind.gatt, .l2cap], [30_000, 200_000, 260_000, 700_000])
  func base(carrier: CarrierKind, size: Int) throws {
    var schedule = Self.update(size)
    schedule.carrier = carrier
    let world = try expectVerified(schedule)
    let base = try #require(schedule.coding?.base)
    var encoder = ZstdEncoder()
    let frame = try encoder.encode(schedule.objects[0], prefix: base, level: 19)
    let best = try #require(frame).count
    let onAir = world.streamOctets + 20 + world.counts.controlOctets
    // Beyond 256 KiB there are segments of 64 KiB, each with what a frame of its own costs.
    let more = size > 262_144 ? (size - 1) / 65_536 : 0
    #expect(onAir <= best * 105 / 100 + 512 + more * 64)
    guard case .coded(.some) = world.counts.accepts.last?.coding else {
      Issue.record("the base was not used")
      return
    }
    #expect(world.flash.contents(of: HaulWorld.baseName) == base)
  }

  @Test(
    "A base that the receiver does not hold is asked for once, before anything is sent",
    arguments: [true, false])
  func missingBase(compresses: Bool) throws {
    var schedule = Self.update(200_000)
    schedule.coding?.isBaseHeld = false
    schedule.coding?.compresses = compresses
    let world = try expectVerified(schedule)
    #expect(world.counts.streamOctetsAtAccept == [0, 0])
    #expect(world.counts.accepts.map(\.coding) == [.uncoded, compresses ? .coded(proof: nil) : nil])
    let plain = try Self.uncoded(schedule).streamOctets
    #expect(compresses ? world.streamOctets < plain : world.streamOctets == plain)
  }

  @Test("A base that is damaged at the receiver is none")
  func damagedBase() throws {
    var schedule = Self.update(100_000)
    let base = try #require(schedule.coding?.base)
    let digest = try SHA256Hasher.digest(of: base)
    schedule.coding?.isBaseHeld = false
    schedule.prepareFlash = { flash in
      try? flash.install(base, as: HaulWorld.baseName)
      flash.corrupt(digest, at: 77)
    }
    let world = try expectVerified(schedule)
    #expect(world.counts.accepts.first?.coding == .uncoded)
  }

  @Test("A receiver that uses no bases is not asked for one")
  func baselessReceiver() throws {
    var schedule = Self.update(100_000)
    schedule.receiver.basePower = nil
    let world = try expectVerified(schedule)
    #expect(world.counts.accepts.map(\.coding) == [.coded(proof: nil)])
  }

  @Test("Of a base larger than the receiver can hold each segment uses the part around it")
  func largeBase() throws {
    var schedule = Self.update(700_000)
    schedule.receiver.basePower = 17
    let world = try expectVerified(schedule)
    let plain = try Self.uncoded(schedule).streamOctets
    #expect(world.streamOctets < plain / 10)
  }

  @Test("A transfer against a base that is cut goes on against it")
  func resumedUpdate() throws {
    var schedule = Self.update(400_000)
    schedule.configuration.codedSegmentPower = 13
    schedule.bytesPerSecond = 1000
    schedule.limit = 61
    schedule.hostDepth = 1
    schedule.reconnectDelay = 100_000
    schedule.receiver.syncBytes = 1
    let whole = try expectVerified(schedule)
    schedule.attempts = 10
    schedule.incidents = [
      (whole.counts.lastConfirmed / 3, .cut), (whole.counts.lastConfirmed * 2 / 3, .powerCut),
    ]
    let world = try expectVerified(schedule)
    #expect(world.counts.resumedFrom.count == 3)
    #expect(world.counts.resumedFrom.dropFirst().allSatisfy { $0 > 0 && $0 % 8192 == 0 })
    #expect(world.streamOctets < whole.streamOctets * 3 / 2)
  }
}
