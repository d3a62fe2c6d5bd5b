import Foundation
import Testing

@testable import BulkTransfer

@Suite("Sender session", .timeLimit(.minutes(30)))
struct SenderSessionTests {
  @Test("Only VERIFIED with the right size and hash of the right object is success")
  func success() throws {
    var bench = try SenderBench()
    let other = try SHA256Hasher.digest(of: image(5))
    // Before the offer was accepted the word counts for nothing.
    bench.verified()
    bench.welcome()
    bench.verified()
    bench.accept()
    _ = bench.packets()
    bench.receipt(10_000, durable: 10_000, state: .verifying)
    bench.verified(index: 1)
    #expect(bench.outcome == nil)
    bench.receipt(0, state: .complete)
    #expect(bench.outcome == nil)
    bench.verified()
    #expect(bench.actions.contains(.verified(index: 0, sha256: bench.digest)))
    #expect(bench.lastRequest == .close(request: bench.session.lastRequest))
    bench.receipt(0, state: .idle, request: bench.session.lastRequest)
    #expect(bench.outcome == .finished)

    for (size, digest) in [(9_999, bench.digest), (10_000, other)] {
      var wrong = try SenderBench()
      wrong.sendEverything()
      wrong.verified(size: UInt64(size), sha256: digest)
      wrong.wait(until: .seconds(5))
      #expect(wrong.error?.code == .verificationFailed)
      #expect(wrong.error?.message.contains("\(size)") == true)
    }
  }

  @Test("A close that nobody answers does not undo what is verified")
  func unansweredClose() throws {
    var bench = try SenderBench()
    bench.sendEverything()
    bench.verified()
    bench.wait(until: .seconds(10))
    #expect(bench.outcome == .finished)
    var cut = try SenderBench()
    cut.sendEverything()
    cut.verified()
    cut.tell(.carrierLost(TransferError(.disconnected, "gone")))
    #expect(cut.outcome == .finished)
  }

  @Test("A request is repeated after 1, 2 and 4 seconds with the same number, until the idle limit")
  func repetition() throws {
    var bench = try SenderBench()
    var times: [Duration] = []
    while bench.outcome == nil, let deadline = bench.session.nextDeadline {
      let before = bench.requests.count
      bench.wait(until: deadline)
      if bench.requests.count > before { times.append(deadline) }
    }
    #expect(times == [.seconds(1), .seconds(3), .seconds(7)])
    #expect(Set(bench.requests).count == 1)
    #expect(bench.error?.code == .timedOut)
    #expect(bench.error?.isRetriable == true)
    #expect(bench.now == .seconds(10))
  }

  @Test("What a receiver states about itself is held against the object")
  func limits() throws {
    var old = try SenderBench()
    old.welcome(version: 2)
    #expect(old.error?.code == .unsupportedDevice)
    var tiny = try SenderBench()
    tiny.welcome(buffer: 2048)
    #expect(tiny.error?.code == .unsupportedDevice)
    var small = try SenderBench()
    small.welcome(largest: 9_999)
    #expect(small.error?.code == .refused)
    #expect(small.error?.message.contains("9999") == true)
    var narrow = try SenderBench(configuration: HaulConfiguration(segmentPower: 16))
    narrow.welcome(buffer: 20_000, power: 15)
    guard case .offer(let offer) = narrow.lastRequest else {
      Issue.record("no offer")
      return
    }
    #expect(offer.segmentPower == 14)
  }

  @Test(
    "A refusal becomes an error in its words",
    arguments: [
      (HaulRefusalCode.version, TransferError.Code.unsupportedDevice, false),
      (.tooLarge, .refused, false), (.noSpace, .refused, false), (.inUse, .refused, true),
      (.policy, .refused, true), (.malformed, .protocolViolation, false),
    ])
  func refusals(code: HaulRefusalCode, expected: TransferError.Code, isRetriable: Bool) throws {
    var bench = try SenderBench()
    bench.welcome()
    // A refusal of something else changes nothing.
    bench.hear(.refused(HaulReply.Refusal(request: 0, code: code, text: "no")))
    #expect(bench.outcome == nil)
    bench.hear(.refused(HaulReply.Refusal(request: bench.session.lastRequest, code: code, text: "the words")))
    #expect(bench.error?.code == expected)
    #expect(bench.error?.isRetriable == isRetriable)
    #expect(bench.error?.message.contains("the words") == true)
  }

  @Test("BUSY extends the patience by what it says, and not for ever")
  func busy() throws {
    var bench = try SenderBench()
    bench.welcome()
    bench.hear(.busy(request: bench.session.lastRequest, seconds: 60))
    bench.wait(until: .seconds(69))
    #expect(bench.outcome == nil)
    bench.wait(until: .seconds(71))
    #expect(bench.error?.code == .timedOut)

    var endless = try SenderBench()
    endless.welcome()
    while endless.outcome == nil, endless.now < .seconds(2000) {
      endless.hear(.busy(request: endless.session.lastRequest, seconds: 60_000))
      endless.wait(until: endless.now + .seconds(5))
    }
    #expect(endless.error?.code == .timedOut)
    #expect(endless.now >= .seconds(600) && endless.now < .seconds(630))
  }

  @Test("BUSY counts also while the user pauses, before the object is accepted and after")
  func busyWhilePaused() throws {
    var bench = try SenderBench()
    bench.welcome()
    bench.tell(.pause)
    bench.hear(.busy(request: bench.session.lastRequest, seconds: 60))
    bench.wait(until: .seconds(65))
    #expect(bench.outcome == nil)
    bench.accept()
    #expect(bench.packets().isEmpty)
    bench.tell(.resume)
    #expect(!bench.packets().isEmpty)
  }

  @Test("Progress while the receiver is busy does not shorten the time that it has asked for")
  func busyThenProgress() throws {
    var bench = try SenderBench()
    bench.sendEverything()
    bench.hear(.busy(request: 0, seconds: 60))
    bench.receipt(4096)
    bench.receipt(10_000)
    bench.wait(until: .seconds(65))
    #expect(bench.outcome == nil)
  }

  @Test("Data that a QUERY shows to be missing is rewound, and a slow receiver is not")
  func query() throws {
    var bench = try SenderBench()
    bench.sendEverything()
    bench.wait(until: .milliseconds(1100))
    #expect(bench.lastRequest == .query(request: bench.session.lastRequest))
    bench.receipt(4095, request: bench.session.lastRequest)
    #expect(bench.lastRequest.map { if case .query = $0 { true } else { false } } == true)
    bench.wait(until: .milliseconds(2200))
    bench.receipt(4095, request: bench.session.lastRequest)
    #expect(bench.lastRequest == .rewind(request: bench.session.lastRequest))
    #expect(bench.packets().isEmpty)
    bench.hear(
      .lost(
        HaulReply.Lost(
          request: bench.session.lastRequest, epoch: Epoch(rawValue: 2), offset: 0, room: 1024, reason: .asked
        )))
    let again = bench.packets()
    #expect(again.first.flatMap { SyncPacket(decoding: $0.body) }?.epoch == Epoch(rawValue: 2))
    #expect(again.count > 30)

    var slow = try SenderBench()
    slow.sendEverything()
    for second in 1...8 {
      slow.wait(until: .milliseconds(second * 1100))
      slow.receipt(10_000, request: slow.session.lastRequest)
    }
    #expect(!slow.requests.contains { if case .rewind = $0 { true } else { false } })
  }

  @Test("A RECEIPT of a newer epoch stands for the LOST that did not arrive")
  func missedLost() throws {
    var bench = try SenderBench()
    bench.sendEverything()
    bench.receipt(4096, durable: 4096, state: .waitingForSync, epoch: 2)
    let packets = bench.packets()
    let sync = packets.first.flatMap { SyncPacket(decoding: $0.body) }
    #expect(sync == SyncPacket(session: 0x1122_3344, epoch: Epoch(rawValue: 2), offset: 4096))
    // The LOST itself, arriving late, starts nothing again.
    bench.lost(epoch: 2, offset: 4096)
    #expect(bench.packets().isEmpty)
  }

  @Test("Losses that get nowhere end the session and name the reason; losses that get on do not")
  func lossLimit() throws {
    var stuck = try SenderBench()
    stuck.sendEverything()
    var epoch: UInt16 = 1
    while epoch < 100 {
      if case .cancel = stuck.lastRequest { break }
      epoch += 1
      stuck.lost(epoch: epoch, offset: 4096)
      _ = stuck.packets()
      stuck.wait(until: stuck.now + .milliseconds(400))
    }
    stuck.wait(until: stuck.now + .seconds(5))
    #expect(epoch == 22)
    #expect(stuck.error?.message.contains("4096") == true)
    #expect(stuck.error?.message.contains("check value") == true)

    var moving = try SenderBench([image(400_000)])
    moving.sendEverything()
    for step in 1...80 {
      moving.receipt(UInt64(step) * 4096 + 1000, epoch: UInt16(step))
      moving.lost(epoch: UInt16(step + 1), offset: UInt64(step) * 4096)
      _ = moving.packets()
    }
    #expect(moving.outcome == nil)
  }

  @Test("A receiver that speaks nonsense is an error and no crash")
  func nonsense() throws {
    var beyond = try SenderBench()
    beyond.welcome()
    beyond.accept(.resumed, durable: 10_001)
    beyond.wait(until: .seconds(4))
    #expect(beyond.error?.code == .protocolViolation)
    var ahead = try SenderBench()
    ahead.sendEverything()
    ahead.lost(epoch: 2, offset: 1 << 40)
    ahead.wait(until: .seconds(4))
    #expect(ahead.error?.code == .protocolViolation)
    var early = try SenderBench([image(300_000)])
    early.welcome()
    early.accept(room: 16)
    _ = early.packets()
    early.receipt(0, durable: 300_000, state: .verifying)
    early.wait(until: .seconds(4))
    #expect(early.error?.code == .protocolViolation)
  }

  @Test("Random replies never crash a session and never make it succeed", arguments: 0..<30)
  func randomReplies(_ seed: UInt64) throws {
    var random = SeededGenerator(seed)
    var bench = try SenderBench([image(20_000)])
    let stranger = try SHA256Hasher.digest(of: image(3))
    for _ in 0..<400 where bench.outcome == nil {
      bench.now += .milliseconds(random.pick(0...300))
      let request = random.chance(0.6) ? bench.session.lastRequest : UInt8(random.pick(0...255))
      let epoch = Epoch(rawValue: UInt16(random.pick(0...4)))
      let offset = random.chance(0.5) ? UInt64(random.pick(0...25_000)) : random.next() >> 16
      let room = UInt16(random.pick(0...300))
      switch random.pick(0...9) {
      case 0: bench.welcome()
      case 1:
        bench.hear(
          .accept(
            HaulReply.Accept(request: request, standing: .resumed, epoch: epoch, durable: offset, room: room))
        )
      case 2, 3:
        let state = HaulReply.Receipt.State(rawValue: UInt8(random.pick(1...5))) ?? .streaming
        bench.hear(
          .receipt(
            HaulReply.Receipt(
              request: request, epoch: epoch, state: state, received: offset, durable: offset, room: room)))
      case 4:
        bench.hear(
          .lost(HaulReply.Lost(request: request, epoch: epoch, offset: offset, room: room, reason: .checksum))
        )
      case 5: bench.hear(.busy(request: request, seconds: UInt16(random.pick(0...65535))))
      case 6: bench.verified(size: 20_000, sha256: random.chance(0.02) ? stranger : nil)
      case 7: bench.tell(.control(random.bytes(random.pick(0...60))))
      case 8: bench.tell(.deadline)
      default: _ = bench.packets(limit: random.pick(20...512))
      }
      // This peer says VERIFIED with the right hash: then, and only then, there may be success.
      if bench.actions.contains(where: { if case .verified = $0 { true } else { false } }) { return }
    }
    #expect(bench.outcome != .finished)
  }

  @Test("Cancelling before anything is under way ends at once")
  func cancelEarly() throws {
    var bench = try SenderBench()
    bench.tell(.cancel(TransferError(.cancelled, "stop")))
    #expect(bench.error?.code == .cancelled)
    // After its end a session is silent.
    bench.tell(.deadline)
    bench.welcome()
    #expect(bench.packets().isEmpty)
    #expect(bench.session.nextDeadline == nil)
    #expect(bench.requests.count == 1)
  }

  @Test("A device that has forgotten the object ends the session so that a new one can be made")
  func forgotten() throws {
    var bench = try SenderBench()
    bench.sendEverything()
    bench.receipt(0, state: .idle)
    #expect(bench.outcome == nil)
    bench.wait(until: .milliseconds(1100))
    bench.receipt(0, state: .idle, request: bench.session.lastRequest)
    #expect(bench.error?.code == .disconnected)
    #expect(bench.error?.isRetriable == true)
  }

  @Test("Settings outside their ranges are named before anything is sent")
  func badSettings() throws {
    let wrong = [
      HaulConfiguration(segmentPower: 11), HaulConfiguration(receiptInterval: 100),
      HaulConfiguration(minimumWindow: 0), HaulConfiguration(maximumWindow: 100),
      HaulConfiguration(packetLimit: 19), HaulConfiguration(idleLimit: .zero),
      HaulConfiguration(receiptInterval: 200_000),
    ]
    for configuration in wrong {
      #expect(throws: TransferError.self) { try SenderBench(configuration: configuration) }
    }
    #expect(throws: TransferError.self) { try SenderBench([Data()]) }
    #expect(throws: TransferError.self) { try SenderBench([]) }
  }
}
