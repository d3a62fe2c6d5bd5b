internal import BulkTransfer
internal import Foundation
internal import VirtualRadio

/// Bytes that do not repeat, of any size, made when they are read: the same for the same seed on every machine.
final class PatternSource: ByteSource {
  let size: UInt64
  private let seed: UInt64

  init(size: UInt64, seed: UInt64) {
    self.size = size
    self.seed = seed
  }

  func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
    guard count >= 0, count <= Self.longestRead, offset <= size, UInt64(count) <= size - offset else {
      throw TransferError(.invalidArgument, "cannot read \(count) bytes at \(offset) of \(size)")
    }
    let first = offset / 8
    let words = (offset + UInt64(count) + 7) / 8 - first
    var bytes = Data(count: Int(words) * 8)
    unsafe bytes.withUnsafeMutableBytes { space in
      for index in 0..<Int(words) {
        var generator = SeededGenerator(seed: seed &+ (first + UInt64(index)) &* 0x9E37_79B9_7F4A_7C15)
        unsafe space.storeBytes(of: generator.next().littleEndian, toByteOffset: index * 8, as: UInt64.self)
      }
    }
    let start = Int(offset % 8)
    return bytes.count == count ? bytes : bytes.subdata(in: start..<(start + count))
  }

  /// The SHA-256 of all of it.
  func digest() throws(TransferError) -> SHA256Digest {
    let hasher = SHA256Hasher()
    var offset: UInt64 = 0
    while offset < size {
      let count = Int(min(UInt64(1 << 16), size - offset))
      hasher.update(try read(at: offset, count: count))
      offset += UInt64(count)
    }
    return try hasher.finalize()
  }
}
