import Foundation
import Testing

@testable import BulkTransfer

/// A receiver whose sender asks for a coded stream, and may send anything.
@Suite("Coded streams at the receiver", .timeLimit(.minutes(30)))
struct CodedReceiverTests {
  static let size = 20_000

  static func bench(
    _ configuration: ReceiverConfiguration = ReceiverConfiguration(device: Array(1...16)),
    coding: CodingRequest = CodingRequest(), base: Data? = nil
  ) throws -> ReceiverBench {
    var bench = try ReceiverBench(size: size, configuration: configuration)
    if let base { try bench.flash.install(base, as: "old.bin") }
    bench.hello()
    guard case .offer(var offer) = bench.offer(2, power: 13) else { return bench }
    offer.extensions = [coding.encoded]
    bench.tell(.control(HaulRequest.offer(offer).encoded))
    bench.sync()
    return bench
  }

  static func octets(
    _ body: Data, length: Int, offset: UInt64, _ bench: ReceiverBench
  ) -> Data {
    var octets = Data([UInt8(length & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length >> 16)]) + body
    var check = SegmentCheck(epoch: bench.session.epoch, start: offset)
    check.update(octets)
    octets.append(contentsOf: check.octets)
    return octets
  }

  static func whole(_ bench: ReceiverBench, prefix: Data = Data()) throws -> Data {
    var encoder = ZstdEncoder()
    var stream = Data()
    for start in stride(from: 0, to: size, by: 8192) {
      let segment = bench.contents[start..<min(size, start + 8192)]
      let frame = try encoder.encode(segment, prefix: prefix, level: 9)
      stream.append(octets(frame ?? segment, length: frame?.count ?? 0, offset: UInt64(start), bench))
    }
    return stream
  }

  func accept(_ bench: ReceiverBench) -> HaulReply.Accept? {
    for case .accept(let accept) in bench.replies.reversed() { return accept }
    return nil
  }

  @Test("A stream of segments as they are, in packets of any length", arguments: [1, 2, 3, 7, 20, 244, 5000])
  func uncompressed(packet: Int) throws {
    var bench = try Self.bench()
    #expect(accept(bench)?.coding == .coded(proof: nil))
    bench.send(try Self.whole(bench), packet: packet)
    #expect(bench.lastReply == .verified(.init(request: 0, index: 0, size: 20_000, sha256: bench.digest)))
  }

  @Test("A base is proved from what is stored, and used")
  func base() throws {
    let digest = image(Self.size)
    let old = digest.prefix(9000) + Data([1, 2, 3]) + digest.dropFirst(9000)
    let identity = try BaseImage(of: MemorySource(Data(old)), challenge: Array(9...16))
    let request = CodingRequest(
      base: .init(
        power: 20,
        identity: BaseRequest(sha256: identity.sha256, size: identity.size, challenge: identity.challenge)))
    var bench = try Self.bench(coding: request, base: Data(old))
    #expect(accept(bench)?.coding == .coded(proof: identity.proof))
    let stream = try Self.whole(bench, prefix: Data(old))
    #expect(stream.count < 200)
    bench.send(stream)
    #expect(bench.lastReply == .verified(.init(request: 0, index: 0, size: 20_000, sha256: bench.digest)))
    #expect(bench.flash.contents(of: "old.bin") == Data(old))

    // Of another size, another power than it can hold, or not there: the stream is uncoded.
    #expect(accept(try Self.bench(coding: request))?.coding == .uncoded)
    var other = request
    other.base?.identity.size += 1
    #expect(accept(try Self.bench(coding: other, base: Data(old)))?.coding == .uncoded)
    other = request
    other.base?.power = 21
    #expect(accept(try Self.bench(coding: other, base: Data(old)))?.coding == .uncoded)
    var configuration = ReceiverConfiguration(device: Array(1...16))
    configuration.decodes = false
    #expect(accept(try Self.bench(configuration, coding: request, base: Data(old)))?.coding == .uncoded)
  }

  @Test("A request for a coding that cannot be read is refused, one that is not known is declined")
  func requests() throws {
    func reply(_ value: [UInt8]) throws -> HaulReply? {
      var bench = try ReceiverBench(size: Self.size)
      bench.hello()
      guard case .offer(var offer) = bench.offer(2) else { return nil }
      offer.extensions = [HaulExtension(type: 1, value: value)]
      bench.tell(.control(HaulRequest.offer(offer).encoded))
      return bench.lastReply
    }
    func coding(_ value: [UInt8]) throws -> HaulReply.Accept.Coding? {
      guard case .accept(let accept) = try reply(value) else { return nil }
      return accept.coding
    }
    #expect(try coding([1]) == .coded(proof: nil))
    #expect(try coding([2]) == .uncoded)
    #expect(try coding([0, 1, 2]) == .uncoded)
    for value: [UInt8] in [
      [], [1, 20], [1, 9] + Array(repeating: 1, count: 46), [1, 20] + Array(repeating: 0, count: 46),
    ] {
      guard case .refused(let refusal) = try reply(value) else {
        Issue.record("\(value) was not refused")
        continue
      }
      #expect(refusal.code == .malformed)
    }
  }

  @Test("A length that cannot be is a wrong check value", arguments: [8192, 8193, 0xFFFFFF])
  func length(_ length: Int) throws {
    var bench = try Self.bench()
    bench.send(Data([UInt8(length & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length >> 16)]))
    guard case .lost(let lost) = bench.lastReply else {
      Issue.record("it was taken")
      return
    }
    #expect(lost.reason == .checksum)
    #expect(lost.offset == 0)
    #expect(bench.session.bufferedBytes == 0)
  }

  @Test("A segment that goes beyond the right edge is not begun")
  func overflow() throws {
    var configuration = ReceiverConfiguration(device: Array(1...16))
    configuration.buffer = 8192
    var bench = try Self.bench(configuration)
    bench.holdsStorage = true
    let stream = try Self.whole(bench)
    bench.send(stream.prefix(8199))
    #expect(bench.session.bufferedBytes == 8192)
    bench.send(stream.dropFirst(8199))
    guard case .lost(let lost) = bench.lastReply else {
      Issue.record("it was taken")
      return
    }
    #expect(lost.reason == .overflow)
    #expect(bench.session.bufferedBytes == 8192)
  }

  @Test(
    "A frame that does not give the segment ends the object, keeps what is durable, and is said to be no fault of storage"
  )
  func undecodable() throws {
    var zeros = ZstdEncoder()
    let bomb = try zeros.encode(Data(count: 1 << 20), prefix: Data(), level: 19)
    let short = try zeros.encode(Data(count: 8191), prefix: Data(), level: 19)
    for body in [try #require(bomb), try #require(short), Data([0]), Data("Zstandard".utf8)] {
      var configuration = ReceiverConfiguration(device: Array(1...16))
      configuration.syncBytes = 1
      var bench = try Self.bench(configuration)
      let stream = try Self.whole(bench)
      bench.send(stream.prefix(8199))
      bench.send(Self.octets(body, length: body.count, offset: 8192, bench))
      guard case .failed(let failure) = bench.lastReply else {
        Issue.record("it was taken")
        continue
      }
      #expect(failure.code == .undecodable)
      #expect(bench.session.bufferedBytes == 0)
      // The same object again, as it is, goes on after the first segment.
      bench.offerObject()
      #expect(accept(bench)?.coding == nil)
      let durable = accept(bench)?.durable ?? 0
      #expect(durable == 8192)
      bench.sync(offset: durable)
      bench.send(bench.stream(from: Int(durable)))
      #expect(bench.lastReply == .verified(.init(request: 0, index: 0, size: 20_000, sha256: bench.digest)))
    }
  }

  @Test("Streams of any octets end in LOST or FAILED, within the buffer", arguments: 0..<30)
  func garbage(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    var configuration = ReceiverConfiguration(device: Array(1...16))
    configuration.buffer = 8192
    var bench = try Self.bench(configuration)
    let stream = try Self.whole(bench)
    for _ in 0..<20 {
      var octets =
        random.chance(0.5) ? random.bytes(random.pick(1...3000)) : stream.dropFirst(random.pick(0...9000))
      if random.chance(0.3) {
        let body = random.bytes(random.pick(1...200))
        octets = Self.octets(body, length: body.count, offset: 0, bench)
      }
      bench.send(Data(octets.prefix(12_000)), packet: random.pick(1...500))
      #expect(bench.session.bufferedBytes <= 8192)
      bench.sync(offset: bench.session.incoming?.good ?? 0)
    }
    #expect(bench.flash.names.isEmpty)
    // And the object still arrives.
    bench.hello(session: 100)
    bench.offerObject()
    let start = accept(bench)?.durable ?? 0
    bench.sync(offset: start, session: 100)
    bench.send(bench.stream(from: Int(start)))
    #expect(bench.lastReply == .verified(.init(request: 0, index: 0, size: 20_000, sha256: bench.digest)))
  }
}

/// What the sender asks for, and what it makes of the answer.
@Suite("Coded streams at the sender", .timeLimit(.minutes(30)))
struct CodedSenderTests {
  static func bench(base: Data? = nil, compresses: Bool = true, coding: CodingSupport?) throws -> SenderBench
  {
    let identity = try base.map { try BaseImage(of: MemorySource($0), challenge: Array(1...8)) }
    var bench = try SenderBench(
      [Data(count: 10_000)], coding: ObjectCoding(compresses: compresses, base: identity))
    bench.welcome(extensions: coding.map { [$0.encoded] } ?? [])
    return bench
  }

  func offered(_ bench: SenderBench) throws -> CodingRequest? {
    guard case .offer(let offer) = bench.lastRequest else { return nil }
    return try CodingRequest(in: offer.extensions)
  }

  @Test("No more is asked for than the receiver states")
  func asks() throws {
    let base = image(5000)
    #expect(try offered(Self.bench(base: base, coding: nil)) == nil)
    #expect(try offered(Self.bench(base: base, coding: CodingSupport(basePower: nil))) == CodingRequest())
    #expect(
      try offered(Self.bench(base: base, compresses: false, coding: CodingSupport(basePower: nil))) == nil)
    #expect(try offered(Self.bench(base: base, coding: CodingSupport(basePower: 12)))?.base?.power == 12)
    #expect(try offered(Self.bench(base: base, coding: CodingSupport(basePower: 27)))?.base?.power == 20)
    #expect(try offered(Self.bench(base: base, coding: CodingSupport(basePower: 28)))?.base?.power == 20)
    #expect(try offered(Self.bench(base: base, coding: CodingSupport(basePower: 9))) == CodingRequest())
  }

  @Test(
    "Whatever but the right proof makes it offer the object again without the base, and nothing was sent",
    arguments: [
      nil, HaulReply.Accept.Coding.uncoded, .coded(proof: nil), .coded(proof: Array(repeating: 7, count: 16)),
    ])
  func wrongProof(coding: HaulReply.Accept.Coding?) throws {
    var bench = try Self.bench(base: image(5000), coding: CodingSupport(basePower: 20))
    bench.accept(coding: coding)
    #expect(bench.packets().isEmpty)
    #expect(try offered(bench) == CodingRequest())
    bench.accept(epoch: 2, coding: .coded(proof: nil))
    let packets = bench.packets()
    #expect(packets.first?.kind == .sync)
    // Nobody codes here: the segment travels as it is, after a length of 0.
    #expect(packets.dropFirst().first?.body.prefix(3) == Data([0, 0, 0]))
    #expect(packets.dropFirst().reduce(0) { $0 + $1.body.count } == 10_000 + 7)
  }

  @Test("The right proof starts the stream")
  func rightProof() throws {
    let base = image(5000)
    var bench = try Self.bench(base: base, coding: CodingSupport(basePower: 20))
    bench.accept(coding: .coded(proof: try BaseImage(of: MemorySource(base), challenge: Array(1...8)).proof))
    #expect(bench.packets().count > 2)
  }

  @Test(
    "A receiver that lacks the answer, or declines, gets the object as it is",
    arguments: [nil, HaulReply.Accept.Coding.uncoded])
  func declined(coding: HaulReply.Accept.Coding?) throws {
    var bench = try Self.bench(coding: CodingSupport(basePower: nil))
    bench.accept(coding: coding)
    #expect(bench.packets().dropFirst().first?.body.prefix(100) == Data(count: 100))
  }

  @Test("A segment begins only where its end is within the right edge")
  func edge() throws {
    var bench = try Self.bench(coding: CodingSupport(basePower: nil))
    bench.accept(room: 39, coding: .coded(proof: nil))
    #expect(bench.packets().map(\.kind) == [.sync])
    bench.receipt(0, room: 40)
    #expect(bench.packets().reduce(0) { $0 + $1.body.count } == 10_000 + 7)
  }

  @Test("What a coded stream waits for is said truly: room, receipts")
  func hold() throws {
    var bench = try Self.bench(coding: CodingSupport(basePower: nil))
    bench.accept(room: 39, coding: .coded(proof: nil))
    _ = bench.packets()
    #expect(bench.session.activity.hold == .storage)
    bench.receipt(0, room: 40)
    _ = bench.packets()
    #expect(bench.session.activity.hold == .receipts)
    #expect(bench.session.run.isWhollySent)
  }

  @Test("A stream takes what any allowance permits, and no more than there is")
  func allowance() {
    let layout = SegmentLayout(objectSize: 100, power: 12)
    var stream = CodedStream(layout: layout, epoch: Epoch(rawValue: 1), offset: 0)
    stream.begin(Data(count: 100), frame: nil)
    #expect(stream.take(limit: .min, allowance: .min).octets.isEmpty)
    #expect(stream.take(limit: 10, allowance: -5).octets.count == 3)
    #expect(stream.take(limit: .max, allowance: .max).octets.count == 104)
    #expect(stream.take(limit: .max, allowance: .max).octets.isEmpty)
    #expect(stream.isAtEnd)
  }

  @Test("A base that no message can state is refused when a session is made")
  func impossibleBase() throws {
    let good = try BaseImage(of: MemorySource(image(5000)), challenge: Array(1...8))
    var bases = [BaseImage](repeating: good, count: 4)
    bases[0].size = 0
    bases[1].size = 1 << 48
    bases[2].challenge = [1]
    bases[3].proof = []
    for base in bases {
      let error = #expect(throws: TransferError.self) {
        try SenderBench(coding: ObjectCoding(compresses: true, base: base))
      }
      #expect(error?.code == .invalidArgument)
    }
  }
}
