import BulkTransfer
import Testing

@Suite("Chunker")
struct ChunkerTests {
  struct Walk {
    var object: [Range<UInt64>] = []
    var checks = 0
    var packets: [Int] = []
  }

  /// Takes packets until the end of the stream.
  private func walk(_ chunker: Chunker, limits: [Int]) -> Walk {
    var chunker = chunker
    var walk = Walk()
    while !chunker.isAtEnd {
      let limit = limits[walk.packets.count % limits.count]
      var count = 0
      while let piece = chunker.next(limit: limit - count, allowance: .max) {
        switch piece {
        case .object(let range):
          walk.object.append(range)
          count += range.count
        case .check(let range):
          walk.checks += range.count
          count += range.count
        }
      }
      walk.packets.append(count)
    }
    return walk
  }

  @Test(
    "Each octet is taken once and each segment has its check",
    arguments: [1, 19, 20, 21, 4095, 4096, 4097, 8191, 8193, 12288], [20, 243, 244, 245, 512])
  func sizes(size: Int, limit: Int) {
    let layout = SegmentLayout(objectSize: UInt64(size), power: 12)
    let walk = walk(Chunker(layout: layout, offset: 0), limits: [limit])
    var next: UInt64 = 0
    for range in walk.object {
      #expect(range.lowerBound == next)
      next = range.upperBound
    }
    #expect(next == UInt64(size))
    #expect(walk.checks == 4 * ((size + 4095) / 4096))
    // All packets but the last are full, and the last is not padded.
    #expect(walk.packets.dropLast().allSatisfy { $0 == limit })
    #expect(walk.packets.reduce(0, +) == size + walk.checks)
  }

  @Test("A limit that changes counts from the very next packet")
  func changingLimit() {
    let layout = SegmentLayout(objectSize: 100_000, power: 12)
    let limits = [20, 20, 244, 244, 182, 512]
    let walk = walk(Chunker(layout: layout, offset: 4000), limits: limits)
    for (index, count) in walk.packets.dropLast().enumerated() {
      #expect(count == limits[index % limits.count])
    }
  }

  @Test("Flow control bounds the object's octets and never the check")
  func allowance() {
    var chunker = Chunker(layout: SegmentLayout(objectSize: 5000, power: 12), offset: 4000)
    #expect(chunker.next(limit: 200, allowance: 0) == nil)
    #expect(chunker.next(limit: 200, allowance: 96) == .object(4000..<4096))
    #expect(chunker.next(limit: 3, allowance: 0) == .check(0..<3))
    #expect(chunker.next(limit: 200, allowance: 0) == .check(3..<4))
    #expect(chunker.next(limit: 200, allowance: 0) == nil)
    #expect(chunker.next(limit: 200, allowance: 7) == .object(4096..<4103))
    #expect(chunker.next(limit: 0, allowance: 7) == nil)
    #expect(!chunker.isAtEnd)
  }

  @Test("A stream that starts at the end has nothing")
  func atEnd() {
    var chunker = Chunker(layout: SegmentLayout(objectSize: 5000, power: 12), offset: 5000)
    #expect(chunker.isAtEnd)
    #expect(chunker.next(limit: 20, allowance: 20) == nil)
  }
}
