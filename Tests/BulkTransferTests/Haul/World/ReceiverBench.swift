import Foundation

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
