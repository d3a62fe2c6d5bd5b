import Foundation
import Testing

@testable import BulkTransfer

@Suite("Frames of segments")
struct ZstdTests {
  static func text(_ count: Int, seed: UInt64 = 1) -> Data {
    var random = SeededGenerator(seed)
    return mixture(count, &random)
  }

  @Test(
    "What is encoded comes back, with a prefix and without", arguments: [2, 100, 4096, 65_536, 262_144],
    [0, 10, 300_000])
  func roundTrip(count: Int, prefixCount: Int) throws {
    let bytes = Self.text(count) + Data(count: 64)
    let prefix = Self.text(prefixCount, seed: 2)
    var encoder = ZstdEncoder()
    var decoder = ZstdDecoder()
    for level: Int32 in [1, 9, 12, 19] {
      let frame = try encoder.encode(bytes, prefix: prefix, level: level)
      let coded = try #require(frame)
      #expect(coded.count < bytes.count)
      let decoded = try decoder.decode(coded, count: bytes.count, prefix: prefix)
      #expect(decoded == bytes)
    }
  }

  @Test("What would not be shorter has no frame", arguments: [0, 1, 2, 10, 5000, 70_000])
  func noise(count: Int) throws {
    var encoder = ZstdEncoder()
    let frame = try encoder.encode(image(count), prefix: Data(), level: 9)
    #expect(frame == nil)
  }

  @Test("Slices of something larger are taken as they are")
  func slices() throws {
    let whole = Data(repeating: 1, count: 50) + Self.text(9000) + Data(repeating: 2, count: 50)
    let bytes = whole.dropFirst(50).dropLast(50)
    var encoder = ZstdEncoder()
    var decoder = ZstdDecoder()
    let frame = try encoder.encode(bytes, prefix: whole.prefix(3000).dropFirst(7), level: 9)
    let coded = Data([9, 9]) + (try #require(frame))
    let decoded = try decoder.decode(coded.dropFirst(2), count: 9000, prefix: whole.prefix(3000).dropFirst(7))
    #expect(decoded == Data(bytes))
  }

  static func code(_ frame: Data, count: Int, prefix: Data = Data()) -> TransferError.Code? {
    var decoder = ZstdDecoder()
    do throws(TransferError) {
      _ = try decoder.decode(frame, count: count, prefix: prefix)
      return nil
    } catch {
      return error.code
    }
  }

  @Test("A frame that gives more or fewer octets than it has to, or is cut short, is an error")
  func sizes() throws {
    let bytes = Self.text(3000)
    var encoder = ZstdEncoder()
    let encoded = try encoder.encode(bytes, prefix: Data(), level: 9)
    let frame = try #require(encoded)
    #expect(Self.code(frame, count: 3000) == nil)
    for count in [0, 1, 2999, 3001, 1 << 20] { #expect(Self.code(frame, count: count) == .undecodable) }
    for count in 0..<frame.count { #expect(Self.code(frame.prefix(count), count: 3000) == .undecodable) }
    #expect(Self.code(frame + [0], count: 3000) == .undecodable)
    #expect(Self.code(frame + frame, count: 6000) == .undecodable)
    // A skippable frame, which libzstd would pass over (RFC 8878, section 3.1.2).
    #expect(Self.code(Data([0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0]) + frame, count: 3000) == .undecodable)
  }

  @Test("A frame that declares terabytes is an error, and sets no memory aside")
  func bomb() throws {
    // Magic number, a window of 2^41 octets or a content size of 2^62, an RLE block of 128 KiB, and a checksum.
    let window: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x04, 0xF8]
    let size: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0xE4, 0, 0, 0, 0, 0, 0, 0, 0x40]
    let block: [UInt8] = [0x03, 0x00, 0x10, 1, 2, 3, 4, 5]
    // A megabyte of zeros in some octets gives the 4096 that were asked for, or nothing.
    var encoder = ZstdEncoder()
    let zeros = try encoder.encode(Data(count: 1 << 20), prefix: Data(), level: 19)
    for frame in [Data(window + block), Data(size + block), try #require(zeros)] {
      var decoder = ZstdDecoder()
      #expect(throws: TransferError.self) { try decoder.decode(frame, count: 4096, prefix: Data()) }
      #expect((1..<(256 << 10)).contains(decoder.memory))
    }
  }

  @Test("Frames carry the checksum of their contents, and one without it is not decoded")
  func checksum() throws {
    var encoder = ZstdEncoder()
    for count in [2000, 70_000] {
      let frame = try encoder.encode(Self.text(count), prefix: Data(), level: 9)
      let descriptor = try #require(frame?.dropFirst(4).first)
      #expect(descriptor & 0x04 != 0)
      // A single segment: no decoder needs a window beside what comes out.
      #expect(descriptor & 0x20 != 0)
    }
    // Ten octets as they are, in a frame without a checksum, and the same with a wrong one.
    let bare = Data([0x28, 0xB5, 0x2F, 0xFD, 0x20, 10, 0x51, 0, 0]) + Data(1...10)
    var wrong = bare + [1, 2, 3, 4]
    wrong[4] = 0x24
    // The format of version 0.7, which libzstd may still read: 64 octets of one kind.
    let legacy = Data([0x27, 0xB5, 0x2F, 0xFD, 0x20, 0x40, 0x80, 0, 0x40, 0x41, 0xC0, 0, 0])
    #expect(Self.code(bare, count: 10) == .undecodable)
    #expect(Self.code(wrong, count: 10) == .undecodable)
    #expect(Self.code(legacy, count: 64) == .undecodable)
    #expect(Self.code(bare, count: -1) == .undecodable)
  }

  @Test("A prefix that is not the encoder's gives no octets", arguments: 0..<20)
  func otherPrefix(place: Int) throws {
    let prefix = image(20_000)
    let bytes = prefix.dropFirst(300).prefix(9000) + prefix.dropFirst(10_000)
    var encoder = ZstdEncoder()
    let encoded = try encoder.encode(Data(bytes), prefix: prefix, level: 19)
    let frame = try #require(encoded)
    var other = prefix
    other[400 + place * 900] ^= 1
    // Whether this octet is referred to or not, what comes out is never another.
    var decoder = ZstdDecoder()
    if let decoded = try? decoder.decode(frame, count: bytes.count, prefix: other) {
      #expect(decoded == Data(bytes))
    }
    #expect(Self.code(frame, count: bytes.count, prefix: image(20_000, seed: 9)) == .undecodable)
  }

  @Test("Octets of any kind are a frame or an error", arguments: 0..<20)
  func garbage(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    var encoder = ZstdEncoder()
    var decoder = ZstdDecoder()
    let prefix = random.bytes(2000)
    let bytes = Self.text(5000, seed: seed) + prefix
    let encoded = try encoder.encode(bytes, prefix: prefix, level: 9)
    let frame = try #require(encoded)
    for _ in 0..<200 {
      var damaged = frame
      for _ in 0..<random.pick(1...4) {
        damaged[random.pick(0...(damaged.count - 1))] = UInt8(random.pick(0...255))
      }
      if let decoded = try? decoder.decode(damaged, count: bytes.count, prefix: prefix) {
        #expect(decoded == bytes)
      }
      let noise = frame.prefix(4) + [0x24 | UInt8(random.pick(0...3))] + random.bytes(random.pick(0...300))
      #expect(throws: TransferError.self) { try decoder.decode(noise, count: 500, prefix: Data()) }
    }
    // After all of that it still works.
    let decoded = try decoder.decode(frame, count: bytes.count, prefix: prefix)
    #expect(decoded == bytes)
  }

  @Test(
    "The part of a base lies within it and around the segment",
    arguments: [1, 1023, 1024, 1025, 5000, 1 << 30])
  func window(size: UInt64) {
    for power: UInt8 in [10, 11, 20] {
      for offset: UInt64 in [0, 1, 511, 512, 513, 4096, 1 << 20, (1 << 48) - 1] {
        let range = BaseWindow.range(of: offset..<(offset + 512), baseSize: size, power: power)
        #expect(range.upperBound <= size)
        let count = range.upperBound - range.lowerBound
        #expect(count == min(size, 1 << UInt64(power)))
        if offset + 512 <= size { #expect(range.contains(offset) && range.contains(offset + 511)) }
      }
    }
  }

  @Test("The first segments tell whether compression pays")
  func pays() throws {
    let encoder = SegmentEncoder()
    #expect(try encoder.pays(for: MemorySource(Self.text(100_000))))
    #expect(try encoder.pays(for: MemorySource(Data(count: 1_000_000))))
    #expect(!(try encoder.pays(for: MemorySource(image(1_000_000)))))
    #expect(!(try encoder.pays(for: MemorySource(Data([1])))))
    #expect(!(try encoder.pays(for: MemorySource(image(300_000) + Data(count: 1_000_000)))))
  }

  @Test("A proof takes the challenge and every octet")
  func proof() throws {
    let bytes = image(300_000)
    let proved = try BaseImage(of: MemorySource(bytes), challenge: Array(1...8))
    #expect(proved.sha256 == (try SHA256Hasher.digest(of: bytes)))
    #expect(proved.proof == Array(try SHA256Hasher.digest(of: Data(1...8) + bytes).bytes.prefix(16)))
    let other = try BaseImage(of: MemorySource(bytes), challenge: Array(2...9))
    #expect(other.proof != proved.proof)
    #expect(other.sha256 == proved.sha256)
  }
}
