import Foundation
import Testing

@testable import BulkTransfer

/// HELLO brings the first OFFER along (docs/protocol.md, section 2).
@Suite("An offer that HELLO brings", .timeLimit(.minutes(30)))
struct EarlyOfferTests {
  /// What the first request of a sender has brought.
  static func brought(_ bench: SenderBench) -> HaulRequest.Offer? {
    guard case .hello(let hello) = bench.requests.first else { return nil }
    return OfferExtension.offer(in: hello.extensions)
  }

  // MARK: Sender

  @Test("A taken offer is not made again: its answer begins the stream")
  func taken() throws {
    var bench = try SenderBench()
    let early = try #require(Self.brought(bench))
    bench.welcome(extensions: [OfferExtension.taken])
    #expect(bench.requests.count == 1)
    bench.accept()
    #expect(bench.session.lastRequest == early.request)
    #expect(bench.packets().first?.kind == .sync)
  }

  @Test("A taken offer that is not answered is repeated by itself, and BUSY for it counts")
  func unanswered() throws {
    var bench = try SenderBench()
    let early = try #require(Self.brought(bench))
    bench.welcome(extensions: [OfferExtension.taken])
    bench.wait(until: .milliseconds(1500))
    #expect(bench.requests.count == 2)
    #expect(bench.lastRequest == .offer(early))
    bench.hear(.busy(request: early.request, seconds: 30))
    bench.wait(until: .seconds(25))
    #expect(bench.outcome == nil)
    bench.hear(.refused(HaulReply.Refusal(request: early.request, code: .noSpace, text: "full")))
    #expect(bench.error?.message.contains("full") == true)
  }

  @Test("A receiver that knows of no such offer gets one, as ever")
  func notTaken() throws {
    var bench = try SenderBench()
    let early = try #require(Self.brought(bench))
    bench.welcome()
    #expect(bench.requests.count == 2)
    #expect(bench.lastRequest == .offer(early))
  }

  @Test(
    "Where WELCOME permits another offer it is made, and what answers the first one means nothing",
    arguments: [[OfferExtension.taken], []])
  func replaced(extensions: [HaulExtension]) throws {
    var bench = try SenderBench(
      [image(300_000)], coding: ObjectCoding(compresses: true),
      configuration: HaulConfiguration(segmentPower: 12))
    let early = try #require(Self.brought(bench))
    #expect(!early.extensions.isEmpty)
    // It has taken the offer, whether this answer says so or that to a lost one did, and now says that it decodes nothing.
    bench.welcome(extensions: extensions)
    guard case .offer(let offer) = bench.lastRequest else {
      Issue.record("no offer")
      return
    }
    #expect(offer.request != early.request)
    #expect(offer.extensions.isEmpty)
    let answer = HaulReply.Accept(
      request: early.request, standing: .fresh, epoch: Epoch(rawValue: 1), durable: 0, room: 1024,
      coding: .coded(proof: nil))
    bench.hear(.accept(answer))
    bench.hear(.refused(HaulReply.Refusal(request: early.request, code: .malformed, text: "no")))
    #expect(bench.session.state == .offering)
    bench.accept(epoch: 2)
    #expect(bench.session.state == .streaming)
  }

  @Test("What answers the offer before WELCOME has come means nothing")
  func beforeWelcome() throws {
    var bench = try SenderBench()
    let early = try #require(Self.brought(bench))
    let answer = HaulReply.Accept(
      request: early.request, standing: .fresh, epoch: Epoch(rawValue: 1), durable: 0, room: 1024)
    bench.hear(.accept(answer))
    bench.hear(.refused(HaulReply.Refusal(request: early.request, code: .malformed, text: "no")))
    #expect(bench.outcome == nil)
    #expect(bench.packets().isEmpty)
    bench.wait(until: .milliseconds(1100))
    #expect(bench.requests.count == 2)
    #expect(bench.requests[0] == bench.requests[1])
  }

  @Test("An offer that does not fit comes after WELCOME")
  func tooLong() throws {
    let name = String(repeating: "n", count: 200)
    let object = OutgoingObject(name: name, size: 5, sha256: try SHA256Hasher.digest(of: image(5)))
    var session = try SenderSession(
      objects: [object], transfer: Array(1...16), sessionNumber: 1, now: .zero)
    session.handle(.carrierReady(.gatt), now: .zero)
    while let action = session.nextAction() {
      guard case .sendControl(let message) = action else { continue }
      guard case .hello(let hello) = try HaulRequest(decoding: message) else {
        Issue.record("no HELLO")
        return
      }
      #expect(hello.extensions.isEmpty)
    }
  }

  // MARK: Receiver

  private static func offer(
    _ bench: ReceiverBench, power: UInt8 = 12, size: UInt64? = nil, extensions: [HaulExtension] = []
  ) throws -> HaulExtension {
    guard case .offer(var offer) = bench.offer(100, power: power, size: size) else {
      throw TransferError(.invalidArgument, "no offer")
    }
    offer.extensions = extensions
    return try #require(OfferExtension.bringing(HaulRequest.offer(offer).encoded))
  }

  private static func welcome(_ bench: ReceiverBench) -> HaulReply.Welcome? {
    for case .welcome(let welcome) in bench.replies.reversed() { return welcome }
    return nil
  }

  @Test("One question and one answer, and the stream begins")
  func oneAnswer() throws {
    var bench = try ReceiverBench()
    bench.hello(extensions: [try Self.offer(bench)])
    #expect(bench.replies.count == 2)
    #expect(OfferExtension.isTaken(try #require(Self.welcome(bench)).extensions))
    guard case .accept(let accept) = bench.lastReply else {
      Issue.record("no ACCEPT")
      return
    }
    #expect(accept.request == 100)
    bench.sync()
    bench.send(bench.stream())
    #expect(bench.flash.contents(of: "a.bin") == bench.contents)
  }

  @Test("A repeated HELLO gets both answers again, and opens nothing anew")
  func repeated() throws {
    var bench = try ReceiverBench()
    let hello = try Self.offer(bench)
    bench.hello(extensions: [hello])
    let first = bench.replies
    bench.hello(extensions: [hello])
    #expect(bench.replies.count == 4)
    #expect(bench.replies[3] == first[1])
    #expect(bench.requests.filter { if case .open = $0.operation { true } else { false } }.count == 1)
    // Once another offer has followed, it brings nothing back.
    bench.offerObject()
    bench.hello(extensions: [hello])
    #expect(Self.welcome(bench).map { OfferExtension.isTaken($0.extensions) } == false)
    bench.sync()
    bench.send(bench.stream())
    #expect(bench.flash.contents(of: "a.bin") == bench.contents)
  }

  @Test(
    "What WELCOME does not allow is left out, without a word",
    arguments: [
      (20, nil, []), (12, 1 << 40, []), (12, nil, [HaulExtension(type: 0x80, value: [])]),
      (12, nil, [CodingRequest().encoded]),
      (12, nil, [HaulExtension(type: CodingExtension.type, value: [])]),
    ] as [(UInt8, UInt64?, [HaulExtension])])
  func leftOut(power: UInt8, size: UInt64?, extensions: [HaulExtension]) throws {
    var bench = try ReceiverBench(
      configuration: ReceiverConfiguration(device: Array(1...16), decodes: false))
    bench.hello(extensions: [try Self.offer(bench, power: power, size: size, extensions: extensions)])
    #expect(bench.replies.count == 1)
    #expect(Self.welcome(bench).map { OfferExtension.isTaken($0.extensions) } == false)
    #expect(bench.requests.isEmpty)
  }

  @Test("What cannot be read is no offer", arguments: [[], [0x02, 0x05], [0x01, 0x01, 1, 1], [0x06, 9]])
  func unreadable(value: [UInt8]) throws {
    var bench = try ReceiverBench()
    bench.hello(extensions: [HaulExtension(type: OfferExtension.type, value: value)])
    #expect(bench.replies.count == 1)
    #expect(bench.requests.isEmpty)
  }

  // MARK: Both

  @Test(
    "A transfer takes one exchange less than with a receiver that does not know of it",
    arguments: [CarrierKind.gatt, .l2cap], [false, true])
  func exchange(carrier: CarrierKind, isCoded: Bool) throws {
    var schedule = isCoded ? CodedTransferTests.schedule(10_000) : Schedule()
    if !isCoded { schedule.objects = [image(10_000)] }
    schedule.carrier = carrier
    schedule.latency = 100_000
    schedule.controlLatency = 100_000...100_000
    let world = try expectVerified(schedule)
    #expect(world.counts.offers.isEmpty)
    // Out and back, and then the stream.
    let first = try #require(world.counts.firstData)
    #expect(first >= 200_000 && first < 300_000)
  }
}
