import Foundation

@testable import BulkTransfer

/// A sender session whose peer is the test.
struct SenderBench {
  var session: SenderSession
  var now: Duration = .zero
  let contents: [Data]
  private(set) var requests: [HaulRequest] = []
  private(set) var actions: [SenderSession.Action] = []

  init(
    _ contents: [Data] = [image(10_000)], coding: ObjectCoding? = nil, former: CodingStanding? = nil,
    configuration: HaulConfiguration = HaulConfiguration()
  ) throws {
    self.contents = contents
    let objects = try contents.enumerated().map { index, bytes in
      OutgoingObject(
        name: "object-\(index)", size: UInt64(bytes.count), sha256: try SHA256Hasher.digest(of: bytes),
        coding: coding)
    }
    session = try SenderSession(
      objects: objects, transfer: Array(1...16), sessionNumber: 0xAABB_CCDD_1122_3344,
      configuration: configuration, coding: former, now: .zero)
    tell(.carrierReady(.gatt))
  }

  var digest: SHA256Digest { session.run.object.sha256 }
  var lastRequest: HaulRequest? { requests.last }

  var outcome: SenderSession.Action? {
    actions.last {
      if case .failed = $0 { return true }
      return $0 == .finished
    }
  }

  var error: TransferError? {
    if case .failed(let error) = outcome { return error }
    return nil
  }

  mutating func tell(_ input: SenderSession.Input) {
    session.handle(input, now: now)
    drain()
  }

  mutating func hear(_ reply: HaulReply) { tell(.control(reply.encoded)) }

  private mutating func drain() {
    while let action = session.nextAction() {
      actions.append(action)
      if case .sendControl(let message) = action, let request = try? HaulRequest(decoding: message) {
        requests.append(request)
      }
    }
  }

  /// Lets time pass, deadline by deadline.
  mutating func wait(until end: Duration) {
    while let deadline = session.nextDeadline, deadline <= end {
      now = max(now, deadline)
      tell(.deadline)
    }
    now = end
  }

  mutating func packets(limit: Int = 244) -> [Record] {
    let contents = contents
    var packets: [Record] = []
    while let packet = session.nextPacket(
      limit: limit, now: now,
      read: { object, offset, count throws(TransferError) in
        contents[object].dropFirst(Int(offset)).prefix(count)
      })
    {
      packets.append(packet)
    }
    drain()
    return packets
  }

  mutating func welcome(
    version: UInt8 = 1, buffer: UInt32 = 1 << 18, power: UInt8 = 16, largest: UInt64 = 1 << 30,
    extensions: [HaulExtension] = []
  ) {
    hear(
      .welcome(
        HaulReply.Welcome(
          request: session.lastRequest, version: version, features: 0, device: Array(1...16), buffer: buffer,
          largestSegmentPower: power, largestObject: largest, freeSpace: 1 << 30,
          extensions: extensions)))
  }

  mutating func accept(
    _ standing: HaulReply.Accept.Standing = .fresh, epoch: UInt16 = 1, durable: UInt64 = 0,
    room: UInt16 = 1024, coding: HaulReply.Accept.Coding? = nil
  ) {
    hear(
      .accept(
        HaulReply.Accept(
          request: session.lastRequest, standing: standing, epoch: Epoch(rawValue: epoch), durable: durable,
          room: room, coding: coding)))
  }

  mutating func receipt(
    _ received: UInt64, durable: UInt64 = 0, state: HaulReply.Receipt.State = .streaming, epoch: UInt16 = 1,
    room: UInt16 = 1024, request: UInt8 = 0
  ) {
    hear(
      .receipt(
        HaulReply.Receipt(
          request: request, epoch: Epoch(rawValue: epoch), state: state, received: received, durable: durable,
          room: room)))
  }

  mutating func lost(epoch: UInt16, offset: UInt64, reason: HaulReply.Lost.Reason = .checksum) {
    hear(
      .lost(
        HaulReply.Lost(request: 0, epoch: Epoch(rawValue: epoch), offset: offset, room: 1024, reason: reason))
    )
  }

  mutating func verified(index: UInt16 = 0, size: UInt64 = 10_000, sha256: SHA256Digest? = nil) {
    hear(
      .verified(HaulReply.Verified(request: 0, index: index, size: size, sha256: sha256 ?? digest)))
  }

  /// Up to the moment at which all octets are sent.
  mutating func sendEverything() {
    welcome()
    accept()
    _ = packets()
  }
}
