import Foundation
import Testing

@testable import BulkTransfer

@Suite("Receiver session", .timeLimit(.minutes(30)))
struct ReceiverSessionTests {
  @Test("An object is taken, verified from storage and named; then QUERY tells it again")
  func whole() throws {
    var bench = try ReceiverBench()
    bench.start()
    bench.send(bench.stream())
    #expect(bench.flash.contents(of: "a.bin") == bench.contents)
    let verified = HaulReply.Verified(request: 0, index: 0, size: 20_000, sha256: bench.digest)
    #expect(bench.lastReply == .verified(verified))
    let number = bench.ask { .query(request: $0) }
    #expect(
      bench.lastReply
        == .verified(HaulReply.Verified(request: number, index: 0, size: 20_000, sha256: bench.digest)))
  }

  @Test("No octet reaches storage before its segment was verified")
  func unverified() throws {
    var bench = try ReceiverBench()
    bench.start()
    var damaged = bench.stream()
    damaged[4096 + 4 + 10] ^= 1
    bench.send(damaged)
    let written = bench.requests.compactMap { request in
      if case .write(let bytes, let offset) = request.operation {
        (offset, bytes.count)
      } else {
        nil as (UInt64, Int)?
      }
    }
    #expect(written.count == 1)
    #expect(written.first?.0 == 0 && written.first?.1 == 4096)
    guard case .lost(let lost) = bench.replies.last(where: { if case .lost = $0 { true } else { false } })
    else {
      Issue.record("no LOST")
      return
    }
    #expect(lost.offset == 4096 && lost.reason == .checksum)
    // Data goes on only after the SYNC of the new epoch.
    bench.send(bench.stream(from: 4096))
    bench.ask { .query(request: $0) }
    #expect(bench.lastReceipt?.state == .waitingForSync)
    #expect(bench.lastReceipt?.received == 4096)
    bench.sync(offset: 4096)
    bench.send(bench.stream(from: 4096))
    #expect(bench.flash.contents(of: "a.bin") == bench.contents)
  }

  @Test(
    "A lost, a doubled and an old segment are found", arguments: ["lost", "doubled", "old epoch", "short"])
  func segments(what: String) throws {
    var bench = try ReceiverBench()
    bench.start()
    let stream = bench.stream()
    switch what {
    case "lost": bench.send(stream.dropFirst(4100))
    case "doubled": bench.send(stream.prefix(4100) + stream.prefix(4100))
    case "old epoch": bench.send(bench.stream(epoch: Epoch(rawValue: 77)))
    default: bench.send(stream.prefix(100) + stream.dropFirst(101))
    }
    #expect(
      bench.replies.contains { if case .lost(let lost) = $0 { lost.reason == .checksum } else { false } })
    #expect(bench.flash.names.isEmpty)
  }

  @Test("More than there is room for is LOST, and memory stays within the buffer")
  func flood() throws {
    var bench = try ReceiverBench(
      size: 200_000, configuration: ReceiverConfiguration(device: Array(1...16), buffer: 8192))
    bench.start()
    bench.holdsStorage = true
    var stream = bench.stream()
    while !stream.isEmpty {
      bench.tell(.packet(Data(stream.prefix(500))))
      stream = stream.dropFirst(500)
      #expect(bench.session.bufferedBytes <= 8192)
    }
    #expect(
      bench.replies.contains { if case .lost(let lost) = $0 { lost.reason == .overflow } else { false } })
  }

  @Test("Room is told when storage has made it, and the right edge never moves back")
  func room() throws {
    var bench = try ReceiverBench(
      size: 60_000, configuration: ReceiverConfiguration(device: Array(1...16), buffer: 8192))
    bench.start()
    bench.holdsStorage = true
    let before = bench.requests.count
    bench.send(bench.stream().prefix(8200))
    #expect(bench.session.bufferedBytes == 8192)
    bench.releaseStorage(from: before)
    #expect(bench.lastReceipt?.received == 8192)
    #expect(bench.lastReceipt?.room == 32)
    var edge: UInt64 = 0
    for case .receipt(let receipt) in bench.replies {
      let told = (receipt.received / 256 + UInt64(receipt.room)) * 256
      #expect(told >= edge)
      edge = told
    }
  }

  @Test("The last octet of a segment counts once its check was right")
  func lastOctet() throws {
    var bench = try ReceiverBench()
    bench.start()
    bench.send(bench.stream().prefix(4096))
    bench.ask { .query(request: $0) }
    #expect(bench.lastReceipt?.received == 4095)
    bench.send(bench.stream().dropFirst(4096).prefix(4))
    bench.ask { .query(request: $0) }
    #expect(bench.lastReceipt?.received == 4096)
  }

  @Test("A SYNC of another session, epoch or offset starts nothing")
  func wrongSync() throws {
    var bench = try ReceiverBench()
    bench.hello()
    bench.offerObject()
    let epoch = bench.session.epoch
    let wrong = [
      SyncPacket(session: 98, epoch: epoch, offset: 0), SyncPacket(session: 99, epoch: epoch.next, offset: 0),
      SyncPacket(session: 99, epoch: epoch, offset: 1),
    ]
    for sync in wrong {
      bench.tell(.packet(sync.encoded))
      bench.ask { .query(request: $0) }
      #expect(bench.lastReceipt?.state == .waitingForSync)
    }
    bench.send(bench.stream())
    bench.ask { .query(request: $0) }
    #expect(bench.lastReceipt?.state == .waitingForSync)
    #expect(bench.lastReceipt?.epoch == epoch)
    #expect(bench.lastReceipt?.received == 0)
    bench.sync()
    bench.send(bench.stream())
    #expect(bench.flash.names == ["a.bin"])
  }

  @Test("Repeated requests change nothing")
  func repetitions() throws {
    var bench = try ReceiverBench()
    bench.hello()
    let offer = bench.offer(7)
    bench.tell(.control(offer.encoded))
    let first = bench.lastReply
    bench.tell(.control(offer.encoded))
    #expect(bench.lastReply == first)
    bench.hello()
    bench.sync()
    bench.send(bench.stream().prefix(5000))
    // Both come again while data flows: the stream goes on.
    bench.tell(.control(offer.encoded))
    bench.hello()
    bench.send(bench.stream().dropFirst(5000).prefix(5000))
    let rewind = HaulRequest.rewind(request: 77)
    bench.tell(.control(rewind.encoded))
    let lost = bench.lastReply
    bench.tell(.control(rewind.encoded))
    #expect(bench.lastReply == lost)
    guard case .lost(let restart) = lost else {
      Issue.record("no LOST")
      return
    }
    #expect(restart.offset == 8192 && restart.reason == .asked)
    bench.sync(offset: 8192)
    bench.send(bench.stream(from: 8192))
    #expect(bench.flash.contents(of: "a.bin") == bench.contents)
    #expect(bench.requests.filter { if case .open = $0.operation { true } else { false } }.count == 1)
  }

  @Test("What cannot be served is refused in words")
  func refusals() throws {
    func refusal(_ prepare: (inout ReceiverBench) -> Void) throws -> HaulReply.Refusal? {
      var bench = try ReceiverBench()
      prepare(&bench)
      guard case .refused(let refusal) = bench.lastReply else { return nil }
      #expect(!refusal.text.isEmpty)
      return refusal
    }
    #expect(try refusal { $0.hello(lowest: 2, highest: 9) }?.code == .version)
    #expect(try refusal { $0.hello(extensions: [HaulExtension(type: 0x80, value: [])]) }?.code == .feature)
    #expect(try refusal { $0.offerObject() }?.code == .malformed)
    #expect(
      try refusal { bench in
        bench.hello()
        bench.offerObject(size: 1 << 40)
      }?.code == .tooLarge)
    #expect(
      try refusal { bench in
        bench.hello()
        bench.offerObject(power: 20)
      }?.code == .malformed)
    #expect(
      try refusal { bench in
        bench.hello()
        bench.tell(.control(bench.offer(9).encoded.prefix(30)))
      }?.code == .malformed)
  }

  @Test("Records that have come together are confirmed together", arguments: [true, false])
  func together(_ together: Bool) throws {
    var bench = try ReceiverBench()
    bench.start()
    bench.holdsStorage = true
    let stream = bench.stream()
    let records = [0..<6000, 6000..<12_000].map { Record(kind: .stream, body: stream[$0]) }
    let before = bench.replies.count
    if together { bench.tell(.records(records)) } else { records.forEach { bench.tell(.records([$0])) } }
    #expect(bench.replies.count - before == (together ? 1 : 2))
    // Two check values are among the octets.
    let received: UInt64 = 12_000 - 8
    #expect(bench.lastReceipt?.received == received)
    #expect(bench.requests.filter { if case .write = $0.operation { true } else { false } }.count == 2)
  }

  @Test("Whatever comes, memory is bounded and nothing is named that was not offered", arguments: 0..<40)
  func anything(_ seed: UInt64) throws {
    var random = SeededGenerator(seed)
    var bench = try ReceiverBench(
      configuration: ReceiverConfiguration(device: Array(1...16), buffer: 16384))
    for _ in 0..<400 {
      bench.now += .milliseconds(random.pick(0...200))
      bench.holdsStorage = random.chance(0.1)
      switch random.pick(0...11) {
      case 0: bench.hello(session: UInt64(random.pick(1...3)))
      case 1: bench.offerObject()
      case 2: bench.tell(.control(random.bytes(random.pick(0...600))))
      case 3: bench.ask { .rewind(request: $0) }
      case 4: bench.ask { .query(request: $0) }
      case 5: if random.chance(0.2) { bench.ask { .cancel(request: $0, reason: 0) } }
      case 6: bench.sync(offset: UInt64(random.pick(0...5) * 4096), session: UInt32(random.pick(1...3)))
      case 7: bench.tell(.packet(random.bytes(random.pick(0...512))))
      case 8: bench.tell(.records([Record(kind: .stream, body: random.bytes(random.pick(1...16384)))]))
      case 9:
        bench.tell(
          random.chance(0.5)
            ? .deadline
            : .records(
              (0..<random.pick(0...4)).map { _ in
                Record(kind: .stream, body: random.bytes(random.pick(1...16384)))
              }))
      case 10:
        bench.tell(
          .storage(StorageReport(object: UInt32(random.pick(0...9)), result: .opened(durable: random.next())))
        )
      default:
        bench.send(bench.stream(from: Int(bench.session.incoming?.good ?? 0)).prefix(random.pick(1...20_000)))
      }
      #expect(bench.session.bufferedBytes <= 16384)
    }
    if let stored = bench.flash.contents(of: "a.bin") { #expect(stored == bench.contents) }
    #expect(bench.flash.names.allSatisfy { $0 == "a.bin" })
  }
}
