import Foundation
import Testing

@testable import BulkTransfer

@Suite("Control messages", .timeLimit(.minutes(30)))
struct HaulMessageTests {
  static let digest = SHA256Digest(bytes: (0..<32).map { UInt8($0 * 7) })

  static let requests: [HaulRequest] = {
    guard let digest else { return [] }
    return [
      .hello(
        HaulRequest.Hello(
          request: 1, lowestVersion: 1, highestVersion: 3, features: 0x8001, session: 0x0123_4567_89AB_CDEF)),
      .hello(
        HaulRequest.Hello(
          request: 255, lowestVersion: 1, highestVersion: 1, features: 0, session: .max,
          extensions: [
            HaulExtension(type: 1, value: []), HaulExtension(type: 0x90, value: [1, 2, 3]),
          ])),
      .offer(
        HaulRequest.Offer(
          request: 2, discardsStored: true, index: 3, count: 4, segmentPower: 20, receiptInterval: 256,
          size: (1 << 48) - 1, sha256: digest, transfer: Array(1...16), name: "firmware ü.bin")),
      .offer(
        HaulRequest.Offer(
          request: 3, discardsStored: false, index: 0, count: 1, segmentPower: 12, receiptInterval: .max,
          size: 1, sha256: digest, transfer: Array(1...16), name: String(repeating: "n", count: 200),
          extensions: [HaulExtension(type: 0x7F, value: Array(repeating: 9, count: 200))])),
      .query(request: 4), .rewind(request: 5), .cancel(request: 6, reason: 7), .close(request: 8),
    ]
  }()

  static let replies: [HaulReply] = {
    guard let digest else { return [] }
    return [
      .welcome(
        HaulReply.Welcome(
          request: 1, version: 1, features: 2, device: Array(16...31), buffer: 0xDEAD_BEEF,
          largestSegmentPower: 16, largestObject: (1 << 48) - 1, freeSpace: 0x1234_5678_9ABC,
          extensions: [HaulExtension(type: 5, value: [0])])),
      .accept(
        HaulReply.Accept(
          request: 2, standing: .resumed, epoch: Epoch(rawValue: 0xFFFE), durable: 0xABCD_EF01_2345, room: 77)
      ),
      .accept(
        HaulReply.Accept(
          request: 2, standing: .fresh, epoch: Epoch(rawValue: 3), durable: 0, room: 77, coding: .uncoded)),
      .accept(
        HaulReply.Accept(
          request: 2, standing: .fresh, epoch: Epoch(rawValue: 3), durable: 0, room: 77,
          coding: .coded(proof: nil))),
      .accept(
        HaulReply.Accept(
          request: 2, standing: .fresh, epoch: Epoch(rawValue: 3), durable: 0, room: 77,
          coding: .coded(proof: Array(1...16)))),
      .receipt(
        HaulReply.Receipt(
          request: 0, epoch: Epoch(rawValue: 1), state: .verifying, received: 0xFFFF_FFFF_FFFF, durable: 1,
          room: 0xFFFF)),
      .lost(
        HaulReply.Lost(request: 9, epoch: Epoch(rawValue: 2), offset: 4096, room: 16, reason: .overflow)),
      .verified(HaulReply.Verified(request: 0, index: 2, size: 99, sha256: digest)),
      .refused(HaulReply.Refusal(request: 1, code: .noSpace, text: "12 bytes are free")),
      .failed(HaulReply.Failure(request: 0, code: .hashDiffers, text: "")),
      .busy(request: 3, seconds: 120),
    ]
  }()

  @Test("Each request comes back as it was", arguments: requests)
  func requestRoundTrip(_ message: HaulRequest) throws {
    #expect(try HaulRequest(decoding: message.encoded) == message)
    // The receiver's view may be a slice of something larger.
    let slice = (Data([0xEE, 0xEE]) + message.encoded).dropFirst(2)
    #expect(try HaulRequest(decoding: slice) == message)
  }

  @Test("Each reply comes back as it was", arguments: replies)
  func replyRoundTrip(_ message: HaulReply) throws {
    #expect(try HaulReply(decoding: message.encoded) == message)
  }

  /// The value of hexadecimal digits; spaces are for people.
  static func octets(_ text: String) -> Data {
    let digits = text.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
    return Data(stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
  }

  @Test("What the document says of CODING is what travels")
  func codingOctets() throws {
    let digest = try #require(Self.digest)
    #expect(CodingSupport(basePower: 20).encoded.value == [0x01, 0x14])
    #expect(CodingSupport(basePower: nil).encoded.value == [0x01, 0x00])
    let welcome = HaulReply.welcome(
      HaulReply.Welcome(
        request: 1, version: 1, features: 0, device: Array(16...31), buffer: 0x40000, largestSegmentPower: 18,
        largestObject: 1 << 32, freeSpace: 1 << 20, extensions: [CodingSupport(basePower: 20).encoded]))
    let fields = "81 01 01 0000 101112131415161718191a1b1c1d1e1f 00000400 12 000000000100 000010000000"
    #expect(welcome.encoded == Self.octets(fields + "01 02 01 14"))
    let base = BaseRequest(sha256: digest, size: 0x0123_4567_89AB, challenge: Array(1...8))
    let offer = HaulRequest.offer(
      HaulRequest.Offer(
        request: 2, discardsStored: false, index: 0, count: 1, segmentPower: 16, receiptInterval: 4096,
        size: 0x30000, sha256: digest, transfer: Array(1...16), name: "a",
        extensions: [CodingRequest(base: .init(power: 20, identity: base)).encoded]))
    let identity = "\(digest.hex) ab8967452301 0102030405060708"
    #expect(offer.encoded.suffix(51) == Self.octets("61 01 30 01 14 \(identity)"))
    #expect(CodingRequest().encoded.value == [0x01])
    let accept = HaulReply.accept(
      HaulReply.Accept(
        request: 2, standing: .fresh, epoch: Epoch(rawValue: 3), durable: 0, room: 0x0400,
        coding: .coded(proof: Array(1...16))))
    let answer = "82 02 00 0300 000000000000 0004 01 11 01 0102030405060708090a0b0c0d0e0f10"
    #expect(accept.encoded == Self.octets(answer))
    #expect(HaulReply.Accept.Coding.uncoded.encoded.value == [0])
  }

  @Test(
    "A segment of a coded stream is its length, its body, and a check over both, the epoch and the offset")
  func segmentOctets() {
    let layout = SegmentLayout(objectSize: 1 << 20, power: 12)
    for (frame, head) in [(nil, "000000"), (Data("frame".utf8), "050000")] {
      var stream = CodedStream(layout: layout, epoch: Epoch(rawValue: 0x0102), offset: 4096)
      let segment = Data(repeating: 0x61, count: 4096)
      stream.begin(segment, frame: frame)
      let covered = Self.octets(head) + (frame ?? segment)
      let check = CRC32C.checksum(of: covered + Self.octets("0201 001000000000"))
      let expected = covered + Data((0..<4).map { UInt8(truncatingIfNeeded: check >> ($0 * 8)) })
      #expect(stream.take(limit: .max, allowance: .max).octets == expected)
    }
  }

  @Test("A request that is cut short is an error at every length", arguments: requests)
  func requestTruncation(_ message: HaulRequest) {
    let whole = message.encoded
    for count in 0..<whole.count {
      // Cut at an extension's border, HELLO and OFFER are whole messages with fewer extensions.
      guard let shorter = try? HaulRequest(decoding: whole.prefix(count)) else { continue }
      switch (shorter, message) {
      case (.hello(let cut), .hello(let full)): #expect(full.extensions.starts(with: cut.extensions))
      case (.offer(let cut), .offer(let full)): #expect(full.extensions.starts(with: cut.extensions))
      default: Issue.record("\(count) of \(whole.count) octets were read as \(shorter)")
      }
      #expect(shorter != message)
    }
  }

  @Test("A reply that is cut short is an error at every length", arguments: replies)
  func replyTruncation(_ message: HaulReply) {
    let whole = message.encoded
    for count in 0..<whole.count {
      guard let shorter = try? HaulReply(decoding: whole.prefix(count)) else { continue }
      if case .accept(let cut) = shorter, case .accept(let full) = message, full.coding != nil {
        // What follows the fields is of no known form then.
        #expect(cut.coding == nil && cut.room == full.room)
        continue
      }
      guard case .welcome(let cut) = shorter, case .welcome(let full) = message else {
        Issue.record("\(count) of \(whole.count) octets were read as \(shorter)")
        continue
      }
      #expect(full.extensions.starts(with: cut.extensions) && cut.extensions != full.extensions)
    }
  }

  @Test("Octets after the known fields are skipped")
  func laterFields() throws {
    for message in Self.requests {
      if case .hello = message { continue }
      if case .offer = message { continue }
      #expect(try HaulRequest(decoding: message.encoded + [1, 2, 3]) == message)
    }
    for message in Self.replies {
      if case .welcome = message { continue }
      #expect(try HaulReply(decoding: message.encoded + [1, 2, 3]) == message)
    }
  }

  @Test("Random octets are an error or a message that can be written again", arguments: 0..<20)
  func garbage(_ seed: UInt64) throws {
    var random = SeededGenerator(seed)
    for _ in 0..<500 {
      var octets = random.bytes(random.pick(0...140))
      // Half of them begin like a message, and get further.
      if !octets.isEmpty, random.chance(0.5) {
        octets[octets.startIndex] = UInt8(random.pick(0...1) * 0x80 + random.pick(1...8))
      }
      if let request = try? HaulRequest(decoding: octets) {
        #expect(try HaulRequest(decoding: request.encoded) == request)
      }
      if let reply = try? HaulReply(decoding: octets) {
        let again = try HaulReply(decoding: reply.encoded)
        #expect(again.request == reply.request)
      }
    }
  }

  @Test(
    "An offer with a field outside its range is named",
    arguments: [
      (11, 4096, 1, "segment"), (21, 4096, 1, "segment"), (12, 255, 1, "receipt interval"),
      (12, 4096, 0, "empty"),
    ])
  func outsideRange(power: Int, interval: Int, size: Int, word: String) throws {
    let digest = try #require(Self.digest)
    let offer = HaulRequest.Offer(
      request: 1, discardsStored: false, index: 0, count: 1, segmentPower: UInt8(power),
      receiptInterval: UInt32(interval), size: UInt64(size), sha256: digest, transfer: Array(1...16),
      name: "a")
    let error = #expect(throws: HaulCodingError.self) {
      try HaulRequest(decoding: HaulRequest.offer(offer).encoded)
    }
    #expect(error?.description.contains(word) == true)
  }

  @Test("A name that is not UTF-8 is an error")
  func brokenName() throws {
    let digest = try #require(Self.digest)
    let offer = HaulRequest.Offer(
      request: 1, discardsStored: false, index: 0, count: 1, segmentPower: 12, receiptInterval: 4096, size: 1,
      sha256: digest, transfer: Array(1...16), name: "ab")
    var octets = HaulRequest.offer(offer).encoded
    octets[octets.count - 1] = 0xFF
    #expect(throws: HaulCodingError.self) { try HaulRequest(decoding: octets) }
  }

  @Test("A receipt fits one notification at the smallest ATT MTU, header of the fragment included")
  func receiptFits() {
    let receipt = HaulReply.receipt(
      HaulReply.Receipt(
        request: 255, epoch: Epoch(rawValue: .max), state: .streaming, received: 1 << 47, durable: 1 << 47,
        room: .max))
    #expect(receipt.encoded.count + 1 <= 20)
  }

  @Test("Texts are cut between characters")
  func longText() throws {
    let text = String(repeating: "ä", count: 300)
    let reply = HaulReply.refused(HaulReply.Refusal(request: 1, code: .policy, text: text))
    guard case .refused(let back) = try HaulReply(decoding: reply.encoded) else {
      Issue.record("not a refusal")
      return
    }
    #expect(back.text == String(repeating: "ä", count: 100))
  }
}

@Suite("Epochs, room and SYNC", .timeLimit(.minutes(30)))
struct StreamStartTests {
  @Test("Epochs are compared across the end of their range")
  func epochOrder() {
    let last = Epoch(rawValue: .max)
    #expect(last.next == Epoch(rawValue: 0))
    #expect(last.next.isNewer(than: last))
    #expect(!last.isNewer(than: last.next))
    #expect(!last.isNewer(than: last))
  }

  @Test("SYNC is twenty octets and comes back as it was")
  func syncRoundTrip() {
    let sync = SyncPacket(session: 0x89AB_CDEF, epoch: Epoch(rawValue: 0x1234), offset: 0xFEDC_BA98_7654)
    #expect(sync.encoded.count == 20)
    #expect(SyncPacket(decoding: sync.encoded) == sync)
    #expect(SyncPacket(decoding: (Data([1]) + sync.encoded).dropFirst()) == sync)
  }

  @Test("A SYNC with any flipped bit, cut or longer is none")
  func damagedSync() {
    let octets = SyncPacket(session: 1, epoch: Epoch(rawValue: 2), offset: 3).encoded
    for bit in 0..<(octets.count * 8) {
      var damaged = octets
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(SyncPacket(decoding: damaged) == nil)
    }
    for count in 0..<octets.count { #expect(SyncPacket(decoding: octets.prefix(count)) == nil) }
    #expect(SyncPacket(decoding: octets + [0]) == nil)
  }
}
