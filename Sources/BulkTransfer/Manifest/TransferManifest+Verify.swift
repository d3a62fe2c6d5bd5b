internal import Foundation

extension TransferManifest {
  /// The first way in which bytes are not those that a manifest describes.
  public enum Difference: Hashable, Sendable, CustomStringConvertible {
    /// Another number of bytes.
    case size(expected: UInt64, found: UInt64)
    /// The first segment with another checksum, and where its bytes are.
    case segment(index: Int, bytes: Range<UInt64>)
    /// Every segment agrees and the whole hash does not: the manifest contradicts itself.
    case hash(expected: SHA256Digest, found: SHA256Digest)

    public var description: String {
      switch self {
      case .size(let expected, let found): "it has \(found) bytes, not \(expected)"
      case .segment(let index, let bytes):
        "segment \(index) (bytes \(bytes.lowerBound) to \(bytes.upperBound - 1)) differs"
      case .hash(let expected, let found): "its SHA-256 is \(found.hex), not \(expected.hex)"
      }
    }
  }
}

extension TransferManifest.Object {
  /// Describes bytes by reading them once, in steps: any size takes little memory.
  ///
  /// - Parameters:
  ///   - segmentSize: bytes in a segment; nil chooses by size.
  ///   - progress: told the number of bytes read so far; ends the work by throwing.
  public init(
    describing source: any ByteSource, name: String, path: String, format: ImageFormat,
    range: AddressRange? = nil, segmentSize: Int? = nil,
    progress: (UInt64) throws(TransferError) -> Void = { _ in }
  ) throws(TransferError) {
    var scanner = try ObjectScanner(
      segmentSize: segmentSize ?? SegmentTable.defaultSegmentSize(for: source.size))
    var done: UInt64 = 0
    try source.forEachBlock(step: MemorySource.longestRead) { bytes throws(TransferError) in
      scanner.update(bytes)
      done += UInt64(bytes.count)
      try progress(done)
      try TransferError.checkCancellation()
    }
    try source.checkUnchanged()
    let (sha256, segments) = try scanner.finish()
    try self.init(
      name: name, path: path, format: format, range: range, sha256: sha256, segments: segments)
  }

  /// Compares bytes with this description.
  ///
  /// - Returns: the first difference; nil if there is none.
  public func firstDifference(
    in source: any ByteSource, progress: (UInt64) throws(TransferError) -> Void = { _ in }
  ) throws(TransferError) -> TransferManifest.Difference? {
    guard source.size == size else { return .size(expected: size, found: source.size) }
    let hasher = SHA256Hasher()
    for (index, checksum) in segments.checksums.enumerated() {
      let bytes = segments.range(of: index)
      // A segment is never longer than a read may be.
      let data = try source.read(at: bytes.lowerBound, count: bytes.count)
      guard CRC32C.checksum(of: data) == checksum else { return .segment(index: index, bytes: bytes) }
      hasher.update(data)
      try progress(bytes.upperBound)
      try TransferError.checkCancellation()
    }
    try source.checkUnchanged()
    let found = try hasher.finalize()
    return found == sha256 ? nil : .hash(expected: sha256, found: found)
  }
}

extension TransferError {
  /// Reading a large file takes a while: the task that does it can be cancelled between blocks.
  fileprivate static func checkCancellation() throws(TransferError) {
    if Task.isCancelled { throw TransferError(.cancelled, "interrupted") }
  }
}
