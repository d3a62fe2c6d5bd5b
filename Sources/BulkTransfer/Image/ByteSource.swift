public import Foundation

/// Bytes of a known size that can be read at any place: a file, the sections of one, or memory.
///
/// A source reads the same bytes each time or throws; reading from several threads is allowed.
public protocol ByteSource: AnyObject, Sendable {
  /// Size in bytes.
  var size: UInt64 { get }

  /// Reads exactly `count` bytes.
  ///
  /// - Throws: `invalidArgument` for a range that is not within ``size``, or for more than ``ByteSource/longestRead`` bytes;
  ///   `unusableFile` if what is read has changed or cannot be read any more.
  func read(at offset: UInt64, count: Int) throws(TransferError) -> Data

  /// Checks that the bytes are still those of the beginning, as far as that is known without reading them again.
  ///
  /// - Throws: `unusableFile` if they are not.
  func checkUnchanged() throws(TransferError)
}

extension ByteSource {
  /// The most bytes that one read gives; bounds the memory of whoever reads in steps.
  public static var longestRead: Int { 1 << 20 }

  public func checkUnchanged() throws(TransferError) {}

  /// Reads the rest from `offset` in steps of at most `step` bytes.
  func forEachBlock(
    from offset: UInt64 = 0, step: Int, _ body: (Data) throws(TransferError) -> Void
  ) throws(TransferError) {
    var offset = offset
    while offset < size {
      let count = Int(min(UInt64(step), size - offset))
      try body(try read(at: offset, count: count))
      offset += UInt64(count)
    }
  }

  /// Refuses a range that a source must not read.
  func checkRange(at offset: UInt64, count: Int) throws(TransferError) {
    guard count >= 0, count <= Self.longestRead, offset <= size, UInt64(count) <= size - offset else {
      throw TransferError(
        .invalidArgument,
        "cannot read \(count) bytes at \(offset) of \(size), at most \(Self.longestRead) at once")
    }
  }
}

/// Bytes in memory.
public final class MemorySource: ByteSource {
  private let bytes: Data

  /// A source of `bytes`.
  public init(_ bytes: Data) { self.bytes = bytes }

  public var size: UInt64 { UInt64(bytes.count) }

  public func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
    try checkRange(at: offset, count: count)
    return Data(bytes.dropFirst(Int(offset)).prefix(count))
  }
}
