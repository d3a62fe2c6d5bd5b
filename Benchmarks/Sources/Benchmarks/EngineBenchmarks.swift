internal import BulkTransfer
internal import CAllocations
internal import Foundation

extension Benchmark {
  /// The engine without a link.
  static let engine = [
    Benchmark(name: "engine bytes of 244") { try EngineBytes.measure("engine bytes of 244", limit: 244) },
    Benchmark(name: "engine bytes of 8192") { try EngineBytes.measure("engine bytes of 8192", limit: 8192) },
    Benchmark(name: "engine packets of 244") {
      try EngineLoop.measure("engine packets of 244", limit: 244, kind: .gatt, sizes: [8 << 20, 64 << 20])
    },
    Benchmark(name: "engine records of 8192") {
      try EngineLoop.measure("engine records of 8192", limit: 8192, kind: .l2cap, sizes: [8 << 20, 1 << 30])
    },
  ]
}

/// What each byte of an object costs, whatever carries it: it is cut into packets, goes into the check value of its segment, and is hashed.
private enum EngineBytes {
  private static let size = 16 << 20

  static func measure(_ name: String, limit: Int) throws -> [Measurement] {
    let source = RepeatedBlock(size: size)
    let (alone, all) = try ratioOfTimes {
      _ = try source.digest()
    } to: {
      try walk(source, limit: limit)
    }
    return [
      Measurement("\(name) cpu", all / alone, "times hashing alone"),
      Measurement("\(name) rate", Double(size) / all / 1e6, "MB/s of one core"),
    ]
  }

  private static func walk(_ source: RepeatedBlock, limit: Int) throws {
    var chunker = Chunker(layout: SegmentLayout(objectSize: source.size, power: 12), offset: 0)
    let hasher = SHA256Hasher()
    var segment: UInt64 = 0
    while chunker.position < source.size {
      let start = chunker.position
      let block = try source.read(at: start, count: 1 << 16)
      hasher.update(block)
      while let piece = chunker.next(limit: limit, allowance: limit) {
        guard case .object(let range) = piece else {
          if chunker.checkLeft == 0, chunker.position == start + UInt64(block.count) { break }
          continue
        }
        guard range.upperBound == chunker.layout.segmentEnd(after: range.lowerBound) else { continue }
        // As a sender does it: a segment at once, when its last octet has gone.
        var check = CRC32C()
        check.update(block.bytes.extracting(Int(segment - start)..<Int(range.upperBound - start)))
        segment = range.upperBound
      }
    }
    _ = try hasher.finalize()
  }
}

/// A sender and a receiver that hand each other what they say, at once.
private struct EngineLoop {
  private let kind: CarrierKind
  private let limit: Int
  private let source: RepeatedBlock
  private var sender: SenderSession
  private var receiver: ReceiverSession
  private let worker: StorageWorker
  private var packets = 0
  private var isFinished = false
  private var failure: TransferError?

  /// Measures the cost with the first size, and the memory with all of them: whether it grows.
  static func measure(
    _ name: String, limit: Int, kind: CarrierKind, sizes: [Int]
  ) throws -> [Measurement] {
    var peaks: [Double] = []
    var measurements: [Measurement] = []
    for size in sizes {
      let source = RepeatedBlock(size: size)
      // Hashing the same bytes, as the receiver does with what it reads back: what a transfer cannot do without.
      let digest = try source.digest()
      let (packets, allocations, octets): (Int, Int, Int)
      (packets, allocations, octets) = try {
        allocations_reset_peak()
        let before = allocations_live()
        var loop = try EngineLoop(source, digest: digest, limit: limit, kind: kind)
        let allocations = try loop.run()
        return (loop.packets, allocations, Int(allocations_peak() - before))
      }()
      peaks.append(Double(octets) / 1024)
      guard size == sizes.first else { continue }
      let (alone, all) = try ratioOfTimes {
        _ = try source.digest()
      } to: {
        var loop = try EngineLoop(source, digest: digest, limit: limit, kind: kind)
        _ = try loop.run()
      }
      measurements = [
        Measurement("\(name) allocations", Double(allocations) / Double(packets), "a packet, both ends"),
        Measurement("\(name) cpu", all / alone, "times hashing alone"),
        Measurement("\(name) cost", (all - alone) / Double(packets) * 1e9, "ns a packet, both ends"),
        Measurement("\(name) rate", Double(size) / all / 1e6, "MB/s of one core"),
      ]
    }
    return measurements + [
      Measurement("\(name) memory", peaks.max() ?? 0, "KiB, both ends"),
      Measurement("\(name) growth", (peaks.last ?? 0) / (peaks.first ?? 1), "times the memory of 8 MiB"),
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
        receiver.handle(kind == .gatt ? .packet(record.body) : .records([record]), now: .zero)
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
