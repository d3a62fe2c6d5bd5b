internal import CZstd
internal import Foundation

/// Compresses segments with libzstd, each into a frame of its own with the checksum of its contents; owns the library's context.
///
/// The context is made at the first use and keeps the memory of the largest frame so far.
@safe struct ZstdEncoder: ~Copyable {
  /// Freed in `deinit`.
  private var context: OpaquePointer?

  init() { unsafe context = nil }

  deinit { unsafe ZSTD_freeCCtx(context) }

  /// Compresses `bytes`.
  ///
  /// - Parameters:
  ///   - prefix: octets that the decoder has already, nearest last; may be empty.
  ///   - level: as the library counts them, 1...19.
  /// - Returns: the frame; nil where it would not be shorter than `bytes`.
  mutating func encode(_ bytes: Data, prefix: Data, level: Int32) throws(TransferError) -> Data? {
    guard bytes.count > 1 else { return nil }
    if unsafe context == nil { unsafe context = ZSTD_createCCtx() }
    guard let context = unsafe context else { throw .coder("has no memory for a context") }
    var frame = Data(count: bytes.count - 1)
    let hasPrefix = !prefix.isEmpty
    let result = unsafe prefix.withUnsafeBytes { prefix in
      unsafe bytes.withUnsafeBytes { source in
        unsafe frame.withUnsafeMutableBytes { target -> Int in
          var code = unsafe ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters)
          if ZSTD_isError(code) == 0 {
            code = unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)
          }
          if ZSTD_isError(code) == 0 {
            code = unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
          }
          if ZSTD_isError(code) == 0, hasPrefix {
            code = unsafe ZSTD_CCtx_refPrefix(context, prefix.baseAddress, prefix.count)
          }
          if ZSTD_isError(code) != 0 { return code }
          return unsafe ZSTD_compress2(
            context, target.baseAddress, target.count, source.baseAddress, source.count)
        }
      }
    }
    guard ZSTD_isError(result) != 0 else { return frame.prefix(result) }
    if ZSTD_getErrorCode(result) == ZSTD_error_dstSize_tooSmall { return nil }
    throw .coder("cannot compress \(bytes.count) bytes: \(unsafe String(cString: ZSTD_getErrorName(result)))")
  }
}

/// Decompresses frames that a peer has sent, each into as many octets as it has to have; owns the library's context.
///
/// A frame is decoded in one go into memory of the stated size, whatever it declares itself: it can fail, and cannot grow. Only frames
/// with a checksum of their contents are decoded: so what comes out is what went in, whatever has become of the prefix meanwhile.
@safe struct ZstdDecoder: ~Copyable {
  /// Freed in `deinit`.
  private var context: OpaquePointer?

  init() { unsafe context = nil }

  deinit { unsafe ZSTD_freeDCtx(context) }

  /// Octets that the library holds for the context.
  var memory: Int { unsafe ZSTD_sizeof_DCtx(context) }

  /// Decompresses one frame.
  ///
  /// - Parameters:
  ///   - count: octets that have to come out.
  ///   - prefix: what the encoder had as prefix.
  /// - Throws: `undecodable` if the octets are not exactly one frame, give anything but `count` octets, or others than were encoded.
  mutating func decode(_ frame: Data, count: Int, prefix: Data) throws(TransferError) -> Data {
    guard count >= 0, Self.hasChecksum(frame) else {
      throw .undecodable(frame, count, "they are no frame with a checksum")
    }
    if unsafe context == nil { unsafe context = ZSTD_createDCtx() }
    guard let context = unsafe context else { throw .coder("has no memory for a context") }
    var bytes = Data(count: count)
    let hasPrefix = !prefix.isEmpty
    let result = unsafe prefix.withUnsafeBytes { prefix in
      unsafe frame.withUnsafeBytes { source in
        unsafe bytes.withUnsafeMutableBytes { target -> Int in
          let extent = unsafe ZSTD_findFrameCompressedSize(source.baseAddress, source.count)
          if ZSTD_isError(extent) != 0 { return extent }
          // Something after the frame: the size that comes out is wrong as well.
          guard extent == source.count else { return target.count + 1 }
          var code = unsafe ZSTD_DCtx_reset(context, ZSTD_reset_session_and_parameters)
          if ZSTD_isError(code) == 0, hasPrefix {
            code = unsafe ZSTD_DCtx_refPrefix(context, prefix.baseAddress, prefix.count)
          }
          if ZSTD_isError(code) != 0 { return code }
          return unsafe ZSTD_decompressDCtx(
            context, target.baseAddress, target.count, source.baseAddress, source.count)
        }
      }
    }
    guard result == count else {
      let why =
        ZSTD_isError(result) != 0
        ? unsafe String(cString: ZSTD_getErrorName(result)) : "it is not one frame of that size"
      throw .undecodable(frame, count, why)
    }
    return bytes
  }

  /// Whether the octets begin as a frame whose descriptor states a checksum (RFC 8878, section 3.1.1).
  ///
  /// The library would also take frames without, and those of the formats that were before the standard.
  private static func hasChecksum(_ frame: Data) -> Bool {
    let magic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]
    guard frame.starts(with: magic), let descriptor = frame.dropFirst(magic.count).first else { return false }
    return descriptor & 1 << 2 != 0
  }
}

extension TransferError {
  fileprivate static func undecodable(_ frame: Data, _ count: Int, _ why: String) -> TransferError {
    TransferError(
      .undecodable, "\(frame.count) coded bytes do not give \(count) bytes: \(why)",
      advice: "send it without compression and without a base")
  }

  fileprivate static func coder(_ what: String) -> TransferError {
    TransferError(.outOfMemory, "libzstd \(what)", advice: "free some memory, or send without compression")
  }
}

extension TransferError.Code {
  /// A part of an object that was sent compressed is not what a decoder takes.
  public static let undecodable = Self(rawValue: "undecodable")
  /// A library has found no memory.
  public static let outOfMemory = Self(rawValue: "out-of-memory")
}
