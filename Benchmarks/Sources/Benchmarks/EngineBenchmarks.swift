internal import BulkTransfer
internal import CAllocations
internal import Foundation

extension Benchmark {
  /// The engine without a link: both sessions of a transfer, in memory, back to back.
  static let engine = [
    Benchmark(name: "engine packets of 244") {
      try EngineLoop.measure("engine packets of 244", limit: 244, kind: .gatt)
    },
    Benchmark(name: "engine records of 8192") {
      try EngineLoop.measure("engine records of 8192", limit: 8192, kind: .l2cap)
    },
  ]
}

/// A sender and a receiver that hand each other what they say, at once.
private struct EngineLoop {
  private static let size = 64 << 20
  private let kind: CarrierKind
  private let limit: Int
  private let source: RepeatedBlock
  private var sender: SenderSession
  private var receiver: ReceiverSession
  private let worker: StorageWorker
  private var packets = 0
  private var isFinished = false
  private var failure: TransferError?

  static func measure(_ name: String, limit: Int, kind: CarrierKind) throws -> [Measurement] {
    let source = RepeatedBlock(size: size)
    // Hashing the same bytes, as the receiver does with what it reads back: what a transfer cannot do without.
    var digest = try source.digest()
    let hashing = try cpuSeconds { digest = try source.digest() }
    var loop = try EngineLoop(source, digest: digest, limit: limit, kind: kind)
    var allocations = 0
    let all = try cpuSeconds { allocations = try loop.run() }
    return [
      Measurement("\(name) allocations", Double(allocations) / Double(loop.packets), "a packet, both ends"),
      Measurement("\(name) cpu", all / hashing, "times hashing alone"),
      Measurement("\(name) rate", Double(size) / all / 1e6, "MB/s of one core"),
    ]
  }

  init(_ source: RepeatedBlock, digest: SHA256Digest, limit: Int, kind: CarrierKind) throws {
    self.source = source
    self.limit = limit
    self.kind = kind
    worker = StorageWorker(ForgetfulStorage(source))
    let object = OutgoingObject(name: "engine", size: source.size, sha256: digest)
    sender = try SenderSession(
      objects: [object], transfer: [UInt8](repeating: 1, count: 16), sessionNumber: 1, now: .zero)
    receiver = ReceiverSession(
      configuration: ReceiverConfiguration(device: [UInt8](repeating: 2, count: 16)),
      limits: StorageLimits(largestObject: 1 << 40, freeSpace: 1 << 40), now: .zero)
  }

  /// - Returns: allocations from the first packet to the last.
  mutating func run() throws -> Int {
    sender.handle(.carrierReady(kind), now: .zero)
    settle()
    let source = source
    let read: ObjectReader = { _, offset, count throws(TransferError) in
      try source.read(at: offset, count: count)
    }
    let before = allocations_count()
    while !isFinished, failure == nil {
      let sent = packets
      while let record = sender.nextPacket(limit: limit, now: .zero, read: read) {
        packets += 1
        receiver.handle(kind == .gatt ? .packet(record.body) : .record(record), now: .zero)
        settle()
      }
      settle()
      guard packets > sent || isFinished else { throw BenchmarkError("the engine came to a stop") }
    }
    if let failure { throw failure }
    return Int(allocations_count() - before)
  }

  /// Lets both ends say what they have to say.
  private mutating func settle() {
    var isMoving = true
    while isMoving {
      isMoving = false
      while let action = sender.nextAction() {
        isMoving = true
        switch action {
        case .sendControl(let message): receiver.handle(.control(message), now: .zero)
        case .finished: isFinished = true
        case .failed(let error): failure = error
        case .dataReady, .progress, .accepted, .verified: break
        }
      }
      while let action = receiver.nextAction() {
        isMoving = true
        switch action {
        case .sendControl(let message): sender.handle(.control(message), now: .zero)
        case .storage(let request):
          if let report = worker.perform(request).report { receiver.handle(.storage(report), now: .zero) }
        case .event, .closeCarrier: break
        }
      }
    }
  }
}

/// The processor time that a piece of work takes.
private func cpuSeconds(_ work: () throws -> Void) rethrows -> Double {
  func now() -> Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
  let start = now()
  try work()
  return now() - start
}

/// One block of bytes over and over: costs nothing to make, whatever the size.
private final class RepeatedBlock: ByteSource {
  let size: UInt64
  private static let block = Data((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

  init(size: Int) { self.size = UInt64(size) }

  func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
    let start = Int(offset % UInt64(Self.block.count))
    if start + count <= Self.block.count { return Self.block[start..<(start + count)] }
    return Self.block[start...] + Self.block.prefix(start + count - Self.block.count)
  }

  func digest() throws(TransferError) -> SHA256Digest {
    let hasher = SHA256Hasher()
    var offset: UInt64 = 0
    while offset < size {
      hasher.update(try read(at: offset, count: 1 << 18))
      offset += 1 << 18
    }
    return try hasher.finalize()
  }
}

/// A storage that forgets what it is given and reads back what was to come: the engine is measured, not memory.
private final class ForgetfulStorage: ReceiverStorage {
  private let source: RepeatedBlock

  init(_ source: RepeatedBlock) { self.source = source }

  func limits() throws(TransferError) -> StorageLimits {
    StorageLimits(largestObject: 1 << 40, freeSpace: 1 << 40)
  }

  func open(_ object: ReceivedObject) throws(TransferError) -> StorageOpening {
    .part(Part(object, source), busy: .zero)
  }

  // Sendable: calls for one part do not overlap, as the protocol says.
  private final class Part: ReceiverPart, @unchecked Sendable {
    let object: ReceivedObject
    private(set) var durableOffset: UInt64 = 0
    private let source: RepeatedBlock

    init(_ object: ReceivedObject, _ source: RepeatedBlock) {
      self.object = object
      self.source = source
    }

    func write(_ bytes: Data, at offset: UInt64) throws(TransferError) -> Duration { .zero }

    func sync(through offset: UInt64) throws(TransferError) -> Duration {
      durableOffset = offset
      return .zero
    }

    func rewind(to offset: UInt64) throws(TransferError) { durableOffset = offset }

    func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
      try source.read(at: offset, count: count)
    }

    func commit(verified digest: SHA256Digest) throws(TransferError) -> String { "nowhere" }

    func discard() throws(TransferError) {}

    func close() {}
  }
}
