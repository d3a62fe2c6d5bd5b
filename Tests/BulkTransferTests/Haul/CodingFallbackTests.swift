import Foundation
import Testing

@testable import BulkTransfer

@Suite("Coded transfers that go on with less", .timeLimit(.minutes(30)))
struct CodingFallbackTests {
  static func proved(_ coding: HaulReply.Accept.Coding?) -> Bool {
    if case .coded(.some) = coding { true } else { false }
  }

  static func failures(_ world: HaulWorld) -> [TransferError.Code] {
    world.counts.events.compactMap {
      if case .objectFailed(_, let error) = $0 { error.code } else { nil }
    }
  }

  /// An image and an older version of it, in segments of 16 KiB.
  static func update(_ size: Int = 200_000) -> Schedule {
    var schedule = CodedTransferTests.update(size)
    schedule.configuration.codedSegmentPower = 14
    schedule.receiver.syncBytes = 1
    return schedule
  }

  @Test("A base that changes under the sender is found by the receiver, and what was durable stays")
  func editedBase() throws {
    var schedule = Self.update()
    let base = try #require(schedule.coding?.base)
    // Too much is another for any segment to be right by chance.
    let other = Data(base.map { $0 ^ 0x55 })
    let (real, wrong) = (SegmentEncoder(), SegmentEncoder())
    let (held, edited) = (MemorySource(base), MemorySource(other))
    nonisolated(unsafe) var count = 0
    schedule.coding?.encode = { _, segment, range throws(TransferError) in
      defer { unsafe count += 1 }
      guard unsafe count >= 4 else { return try real.encode(segment, against: held, range) }
      // As if it were the base: the decoder has the other one.
      return try wrong.encode(Data(segment.map { $0 ^ 0x55 }), against: edited, range)
    }
    let world = try expectVerified(schedule)
    #expect(Self.failures(world) == [.undecodable])
    #expect(world.counts.accepts.count == 2)
    #expect(Self.proved(world.counts.accepts[0].coding))
    #expect(world.counts.accepts[1].coding == nil)
    #expect(world.counts.resumedFrom == [0, 4 * 16_384])
    #expect(world.counts.progress.last?.codingShortfall == .failed)
  }

  @Test("Segments that are others than they should be cost the coding: the object is sent once more as it is")
  func wrongSegments() throws {
    var schedule = CodedTransferTests.schedule(150_000)
    let real = SegmentEncoder()
    schedule.coding?.encode = { _, segment, _ throws(TransferError) in
      var wrong = segment
      wrong[wrong.startIndex] ^= 1
      return try real.encode(wrong)
    }
    let world = try expectVerified(schedule)
    #expect(Self.failures(world) == [.verificationFailed])
    #expect(world.counts.accepts.map(\.coding) == [.coded(proof: nil), nil])
    #expect(world.counts.resumedFrom == [0, 0])
  }

  @Test("A storage that damages what was sent as it is is not asked twice")
  func wrongStorage() throws {
    var schedule = CodedTransferTests.schedule(100_000)
    schedule.prepareFlash = { $0.corruptWrites(at: 500, .always) }
    let world = try HaulWorld(schedule)
    guard case .failed(let error) = world.run() else {
      Issue.record("it was verified")
      return
    }
    #expect(error.code == .verificationFailed)
    #expect(Self.failures(world) == [.verificationFailed, .verificationFailed])
  }

  @Test("A base that the sender cannot read any more makes segments travel as they are")
  func senderBaseFails() throws {
    var schedule = Self.update()
    let base = try #require(schedule.coding?.base)
    let (real, held) = (SegmentEncoder(), MemorySource(base))
    nonisolated(unsafe) var count = 0
    schedule.coding?.encode = { _, segment, range throws(TransferError) in
      defer { unsafe count += 1 }
      if unsafe count == 2 { throw TransferError(.unusableFile, "the base has gone") }
      return try real.encode(segment, against: held, range)
    }
    let world = try expectVerified(schedule)
    #expect(world.counts.accepts.count == 1)
    #expect(world.streamOctets > 16_384 && world.streamOctets < 30_000)
  }

  @Test("A receiver that cannot decode what was sent as it is ends the transfer at once")
  func undecodableUncoded() throws {
    for coding in [nil, ObjectCoding(compresses: true)] {
      var bench = try SenderBench(coding: coding)
      bench.welcome()
      bench.accept()
      _ = bench.packets()
      bench.hear(.failed(HaulReply.Failure(request: 0, code: .undecodable, text: "")))
      let error = try #require(bench.error)
      #expect(error.code == .protocolViolation)
      #expect(error.message.contains("as it is"))
    }
  }

  @Test("FAILED, 5 while the receiver verifies makes the sender offer the object as it is")
  func undecodableInVerification() throws {
    var bench = try SenderBench([Data(count: 10_000)], coding: ObjectCoding(compresses: true))
    bench.welcome(extensions: [CodingSupport(basePower: nil).encoded])
    bench.accept(coding: .coded(proof: nil))
    _ = bench.packets()
    bench.receipt(10_000)
    #expect(bench.session.state == .verifying)
    bench.hear(.failed(HaulReply.Failure(request: 0, code: .undecodable, text: "")))
    guard case .offer(let offer) = bench.lastRequest else {
      Issue.record("it was not offered")
      return
    }
    #expect(offer.extensions.isEmpty)
    bench.accept(.resumed, epoch: 2, durable: 4096)
    #expect(bench.packets().first?.kind == .sync)
    bench.receipt(10_000, epoch: 2)
    bench.verified()
    bench.receipt(0, request: bench.session.lastRequest)
    #expect(bench.outcome == .finished)
  }

  // MARK: Links

  @Test(
    "What does not shrink gets through a link that loses a packet in two hundred, with a base",
    arguments: 0..<6)
  func lossyLink(seed: UInt64) throws {
    var schedule = Schedule()
    schedule.seed = seed
    schedule.objects = [image(600_000)]
    schedule.coding = Schedule.Coding(base: image(600_000, seed: 8))
    schedule.faults.dataLoss = 0.005
    schedule.bytesPerSecond = 50_000
    let world = try expectVerified(schedule)
    // Twelve seconds on the air without losses.
    #expect(world.now < 90_000_000)
  }

  @Test(
    "A link that lasts for 40 s at 5 kB/s brings what does not shrink to its end", arguments: [false, true])
  func shortLinks(hasBase: Bool) throws {
    var schedule = Schedule()
    schedule.objects = [image(600_000)]
    schedule.coding = Schedule.Coding(base: hasBase ? image(600_000, seed: 8) : nil)
    // Segments that take longer than a link lasts.
    schedule.configuration.codedSegmentPower = 18
    schedule.bytesPerSecond = 5000
    schedule.hostDepth = 2
    schedule.attempts = 40
    schedule.incidents = (1...40).map { ($0 * 40_000_000, .cut) }
    let world = try expectVerified(schedule)
    #expect(world.attempts <= 7)
  }

  @Test("Lower segments are kept over sessions, and no coding at all in the end")
  func standing() {
    var standing = CodingStanding(object: 0)
    var powers: [UInt8?] = []
    while standing.limit != .uncoded {
      standing.lower(from: standing.powerLimit ?? 18)
      powers.append(standing.powerLimit)
    }
    #expect(powers == [16, 14, 12, 12])
    #expect(standing.shortfall == .failed)
  }

  @Test("What was learned of the coding is kept in words, and nothing else is")
  func facts() throws {
    var standing = CodingStanding(object: 3)
    #expect(standing.facts.isEmpty)
    standing.dropBase()
    // Another day the device may hold it.
    #expect(standing.facts.isEmpty)
    for power: UInt8 in [18, 16, 14, 12] {
      standing.lower(from: power)
      let again = try #require(CodingStanding(facts: standing.facts))
      #expect(again.object == 3 && again.powerLimit == standing.powerLimit)
      #expect((again.limit == .uncoded) == (standing.limit == .uncoded))
      #expect(again.facts == standing.facts)
    }
    #expect(standing.limit == .uncoded && standing.powerLimit == 12)
    var undecodable = CodingStanding(object: 0)
    undecodable.drop(.failed)
    let again = try #require(CodingStanding(facts: undecodable.facts))
    #expect(again.limit == .uncoded && again.powerLimit == nil && again.shortfall == .failed)
    for words in ["", "1", "x:14", "-1:14", "0:11", "0:21", "0:14:", "0:14:coded", "0:14:uncoded:", "0:999"] {
      #expect(CodingStanding(facts: ["coding-limit": words]) == nil, "\(words)")
    }
  }

  @Test("An object begins as an earlier run has left it, whichever it is", arguments: 0...1)
  func former(object: Int) throws {
    var standing = CodingStanding(object: object)
    standing.drop(.failed)
    var bench = try SenderBench(
      [image(10_000), image(10_000, seed: 8)], coding: ObjectCoding(compresses: true), former: standing)
    bench.welcome(extensions: [CodingSupport(basePower: nil).encoded])
    for index in 0...1 {
      guard case .offer(let offer) = bench.lastRequest else {
        Issue.record("it was not offered")
        return
      }
      #expect(offer.extensions.isEmpty == (index == object))
      bench.accept(epoch: UInt16(index + 1), coding: index == object ? nil : .coded(proof: nil))
      _ = bench.packets()
      bench.receipt(10_000, epoch: UInt16(index + 1))
      bench.verified(index: UInt16(index))
    }
  }

  @Test("What does not get through in the smallest coded segments travels uncoded in no larger ones")
  func smallest() throws {
    var bench = try SenderBench(
      [image(100_000)], coding: ObjectCoding(compresses: true),
      configuration: HaulConfiguration(segmentPower: 16, codedSegmentPower: 12))
    bench.welcome(extensions: [CodingSupport(basePower: nil).encoded])
    bench.accept(coding: .coded(proof: nil))
    for epoch: UInt16 in 2...4 {
      _ = bench.packets()
      bench.lost(epoch: epoch, offset: 0)
    }
    guard case .offer(let offer) = bench.lastRequest else {
      Issue.record("it was not offered anew")
      return
    }
    #expect(offer.extensions.isEmpty)
    #expect(offer.segmentPower == 12)
  }

  @Test("Segments are small enough for four in the buffer where an object has more than one")
  func flow() throws {
    var schedule = Schedule()
    schedule.objects = [image(2_000_000)]
    schedule.coding = Schedule.Coding(base: image(2_000_000, seed: 8))
    schedule.bytesPerSecond = 100_000
    schedule.limit = 244
    let world = try expectVerified(schedule)
    let first = try #require(world.counts.firstData)
    let rate = 2_000_000 / (Double(world.counts.lastConfirmed - first) / 1_000_000)
    #expect(rate >= 97_000)
  }
}
