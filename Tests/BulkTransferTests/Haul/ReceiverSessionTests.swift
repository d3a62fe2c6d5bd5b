import Foundation
import Testing

@testable import BulkTransfer

/// A receiver session whose peer is the test; storage is a flash, unless it is held back.
struct ReceiverBench {
  var session: ReceiverSession
  var now: Duration = .zero
  let contents: Data
  let digest: SHA256Digest
  let flash = SimulatedFlash()
  private let worker: StorageWorker
  private(set) var replies: [HaulReply] = []
  private(set) var events: [ReceiverSession.Event] = []
  private(set) var requests: [StorageRequest] = []
  var holdsStorage = false
  private(set) var hasClosed = false
  private var number: UInt8 = 0

  init(
    size: Int = 20_000, configuration: ReceiverConfiguration = ReceiverConfiguration(device: Array(1...16))
  ) throws {
    contents = image(size)
    digest = try SHA256Hasher.digest(of: contents)
    worker = StorageWorker(flash)
    session = ReceiverSession(configuration: configuration, limits: try flash.limits(), now: .zero)
  }

  var lastReply: HaulReply? { replies.last }

  var lastReceipt: HaulReply.Receipt? {
    for case .receipt(let receipt) in replies.reversed() { return receipt }
    return nil
  }

  mutating func tell(_ input: ReceiverSession.Input) {
    session.handle(input, now: now)
    drain()
  }

  mutating func drain() {
    while let action = session.nextAction() {
      switch action {
      case .sendControl(let message):
        if let reply = try? HaulReply(decoding: message) { replies.append(reply) }
      case .storage(let request):
        requests.append(request)
        guard !holdsStorage, let report = worker.perform(request).report else { continue }
        session.handle(.storage(report), now: now)
      case .event(let event): events.append(event)
      case .closeCarrier: hasClosed = true
      }
    }
  }

  /// Lets storage do what waits.
  mutating func releaseStorage(from start: Int) {
    holdsStorage = false
    for request in requests[start...] {
      if let report = worker.perform(request).report { session.handle(.storage(report), now: now) }
    }
    drain()
  }

  mutating func wait(until end: Duration) {
    while let deadline = session.nextDeadline, deadline <= end {
      now = max(now, deadline)
      tell(.deadline)
      if hasClosed { break }
    }
    now = max(now, end)
  }

  @discardableResult
  mutating func ask(_ make: (UInt8) -> HaulRequest) -> UInt8 {
    number += 1
    tell(.control(make(number).encoded))
    return number
  }

  mutating func hello(
    session: UInt64 = 99, lowest: UInt8 = 1, highest: UInt8 = 1, extensions: [HaulExtension] = []
  ) {
    ask {
      .hello(
        HaulRequest.Hello(
          request: $0, lowestVersion: lowest, highestVersion: highest, features: 0, session: session,
          extensions: extensions))
    }
  }

  func offer(_ request: UInt8, power: UInt8 = 12, interval: UInt32 = 4096, size: UInt64? = nil) -> HaulRequest
  {
    .offer(
      HaulRequest.Offer(
        request: request, discardsStored: false, index: 0, count: 1, segmentPower: power,
        receiptInterval: interval,
        size: size ?? UInt64(contents.count), sha256: digest, transfer: Array(1...16), name: "a.bin"))
  }

  mutating func offerObject(power: UInt8 = 12, size: UInt64? = nil) {
    number += 1
    tell(.control(offer(number, power: power, size: size).encoded))
  }

  mutating func sync(epoch: UInt16? = nil, offset: UInt64 = 0, session: UInt32 = 99) {
    tell(
      .packet(
        SyncPacket(session: session, epoch: epoch.map(Epoch.init) ?? self.session.epoch, offset: offset)
          .encoded))
  }

  /// The stream from an offset on, as a sender makes it.
  func stream(from start: Int = 0, epoch: Epoch? = nil) -> Data {
    var stream = Data()
    var offset = start
    while offset < contents.count {
      let end = min(contents.count, (offset / 4096 + 1) * 4096)
      var check = SegmentCheck(epoch: epoch ?? session.epoch, start: UInt64(offset))
      check.update(contents[offset..<end])
      stream.append(contents[offset..<end])
      stream.append(contentsOf: check.octets)
      offset = end
    }
    return stream
  }

  mutating func send(_ octets: Data, packet: Int = 244) {
    var rest = octets
    while !rest.isEmpty {
      tell(.packet(Data(rest.prefix(packet))))
      rest = rest.dropFirst(packet)
    }
  }

  /// Up to the SYNC of a fresh object.
  mutating func start() {
    hello()
    offerObject()
    sync()
  }
}

@Suite("Receiver session")
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

  @Test("Offers without end do not pile up requests to a storage that is slow to open")
  func endlessOffers() throws {
    var bench = try ReceiverBench()
    bench.holdsStorage = true
    for session in 1...50 {
      bench.hello(session: UInt64(session))
      bench.offerObject()
      bench.offerObject()
    }
    #expect(bench.requests.count < 12)
    guard case .refused(let refusal) = bench.lastReply else {
      Issue.record("not refused")
      return
    }
    #expect(refusal.code == .policy)
    // Once the storage has caught up, offers are taken again.
    bench.releaseStorage(from: 0)
    bench.offerObject()
    guard case .accept = bench.lastReply else {
      Issue.record("not accepted")
      return
    }
  }

  @Test(
    "After a write has failed nothing later becomes durable, even if the link is lost before the failure is known"
  )
  func failedWriteThenCut() throws {
    var bench = try ReceiverBench()
    bench.start()
    bench.holdsStorage = true
    let before = bench.requests.count
    bench.flash.failWrites(at: 5000, .once)
    bench.send(bench.stream().prefix(17_000))
    bench.tell(.carrierLost)
    bench.releaseStorage(from: before)
    #expect(bench.flash.durableOffset(of: bench.digest) == 0)
    bench.hello(session: 100)
    bench.offerObject()
    bench.sync(session: 100)
    bench.send(bench.stream())
    #expect(bench.flash.contents(of: "a.bin") == bench.contents)
  }

  @Test("An object that another connection uses is refused as busy")
  func inUse() throws {
    var bench = try ReceiverBench()
    let other = try bench.flash.open(ReceivedObject(sha256: bench.digest, size: 20_000, name: "a.bin"))
    bench.hello()
    bench.offerObject()
    guard case .refused(let refusal) = bench.lastReply else {
      Issue.record("not refused")
      return
    }
    #expect(refusal.code == .inUse)
    withExtendedLifetime(other) {}
  }

  @Test(
    "An object that the storage does not take is refused for its reason",
    arguments: [
      (TransferError.Code.objectTooLarge, HaulRefusalCode.tooLarge), (.nameNotAcceptable, .badName),
      (.nameTaken, .nameExists), (.diskFull, .noSpace), (.locked, .inUse), (.refused, .policy),
    ])
  func storageRefusals(code: TransferError.Code, expected: HaulRefusalCode) throws {
    var bench = try ReceiverBench()
    bench.holdsStorage = true
    bench.hello()
    bench.offerObject()
    let object = try #require(bench.requests.last).object
    bench.tell(.storage(StorageReport(object: object, result: .failed(TransferError(code, "not this one")))))
    guard case .refused(let refusal) = bench.lastReply else {
      Issue.record("not refused but \(String(describing: bench.lastReply))")
      return
    }
    #expect(refusal.code == expected)
    #expect(refusal.text == "not this one")
  }

  @Test("What is durable is told soon, and a gigabyte does not need a sync for each segment")
  func syncPolicy() throws {
    var bench = try ReceiverBench(size: 3 << 20)
    bench.start()
    let stream = bench.stream()
    // 100 000 octets per second.
    for start in stride(from: 0, to: stream.count, by: 500) {
      bench.wait(until: .microseconds(start * 10))
      bench.tell(.packet(stream[start..<min(start + 500, stream.count)]))
    }
    #expect(bench.flash.names == ["a.bin"])
    let syncs = bench.requests.filter { if case .sync = $0.operation { true } else { false } }.count
    #expect(syncs > 31 && syncs < 140)
    var durable: UInt64 = 0
    for case .receipt(let receipt) in bench.replies where receipt.state == .streaming {
      #expect(receipt.durable >= durable)
      #expect(receipt.received - receipt.durable < 45_000)
      durable = receipt.durable
    }
  }

  @Test("Without more data what was written still becomes durable and is told")
  func syncByTime() throws {
    var bench = try ReceiverBench()
    bench.start()
    bench.send(bench.stream().prefix(9000))
    #expect(bench.lastReceipt?.durable == 0)
    bench.wait(until: .seconds(2))
    #expect(bench.lastReceipt?.durable == 8192)
  }

  @Test("Storage that is silent is announced as busy; a silent sender is let go, with what it has sent kept")
  func silence() throws {
    var bench = try ReceiverBench()
    bench.holdsStorage = true
    bench.hello()
    bench.offerObject()
    bench.wait(until: .seconds(60))
    let busy = bench.replies.filter { if case .busy(let request, _) = $0 { request == 2 } else { false } }
    #expect(busy.count > 10)
    #expect(!bench.hasClosed)
    bench.releaseStorage(from: 0)
    bench.sync()
    bench.send(bench.stream().prefix(6000))
    bench.wait(until: .seconds(120))
    #expect(bench.hasClosed)
    #expect(!bench.session.isActive)
    #expect(bench.flash.durableOffset(of: bench.digest) == 4096)
  }

  @Test("Losing the carrier makes durable what was verified")
  func carrierLost() throws {
    var bench = try ReceiverBench()
    bench.start()
    bench.send(bench.stream().prefix(10_000))
    bench.tell(.carrierLost)
    #expect(bench.flash.durableOffset(of: bench.digest) == 8192)
    bench.hello(session: 100)
    bench.offerObject()
    guard case .accept(let accept) = bench.lastReply else {
      Issue.record("not accepted")
      return
    }
    #expect(accept.standing == .resumed && accept.durable == 8192)
  }

  @Test("A wrong whole hash fails the object and throws it away")
  func wrongHash() throws {
    var bench = try ReceiverBench()
    bench.flash.corruptWrites(at: 5000)
    bench.start()
    bench.send(bench.stream())
    guard case .failed(let failure) = bench.lastReply else {
      Issue.record("not failed")
      return
    }
    #expect(failure.code == .hashDiffers)
    #expect(bench.flash.names.isEmpty)
    #expect(bench.flash.durableOffset(of: bench.digest) == nil)
    let number = bench.ask { .query(request: $0) }
    guard case .failed(let again) = bench.lastReply else {
      Issue.record("not told again")
      return
    }
    #expect(again.request == number && again.code == .hashDiffers)
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
      case 8: bench.tell(.record(Record(kind: .stream, body: random.bytes(random.pick(1...16384)))))
      case 9: bench.tell(.deadline)
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
