internal import CCrypto
public import Foundation

/// A SHA-256 that is fed piece by piece, computed by libcrypto.
///
/// A failure of the library (out of memory, a provider that forbids the algorithm) is kept and thrown by ``finalize()``, so that feeding
/// stays free of error handling and a wrong digest cannot come out. Not for use from several threads at once.
@safe public final class SHA256Hasher {
  /// Freed in `deinit`; nil once the library has failed or the digest was taken.
  private var context: OpaquePointer?

  /// Starts a hash over no bytes.
  public init() {
    unsafe context = EVP_MD_CTX_new()
    if let started = unsafe context, unsafe EVP_DigestInit_ex(started, EVP_sha256(), nil) != 1 { drop() }
  }

  deinit { drop() }

  /// Feeds more bytes.
  public func update(_ bytes: RawSpan) {
    unsafe bytes.withUnsafeBytes { unsafe update($0) }
  }

  /// Feeds more bytes.
  public func update(_ bytes: Data) {
    unsafe bytes.withUnsafeBytes { unsafe update($0) }
  }

  /// Feeds more bytes.
  public func update(_ bytes: [UInt8]) {
    unsafe bytes.withUnsafeBytes { unsafe update($0) }
  }

  /// Feeds more bytes.
  public func update(_ bytes: UnsafeRawBufferPointer) {
    guard let context = unsafe context, let start = bytes.baseAddress else { return }
    if unsafe EVP_DigestUpdate(context, start, bytes.count) != 1 { drop() }
  }

  /// The hash of everything fed so far; can be taken once.
  public func finalize() throws(TransferError) -> SHA256Digest {
    defer { drop() }
    var bytes = [UInt8](repeating: 0, count: SHA256Digest.byteCount)
    guard let context = unsafe context, unsafe EVP_DigestFinal_ex(context, &bytes, nil) == 1,
      let digest = SHA256Digest(bytes: bytes)
    else {
      throw TransferError(
        .hashUnavailable, "libcrypto could not compute a SHA-256",
        advice: "check the memory left and whether the OpenSSL configuration allows SHA-256")
    }
    return digest
  }

  /// The hash of `bytes` in one go.
  public static func digest(of bytes: Data) throws(TransferError) -> SHA256Digest {
    let hasher = SHA256Hasher()
    hasher.update(bytes)
    return try hasher.finalize()
  }

  /// The hash of `bytes` in one go.
  public static func digest(of bytes: [UInt8]) throws(TransferError) -> SHA256Digest {
    let hasher = SHA256Hasher()
    hasher.update(bytes)
    return try hasher.finalize()
  }

  private func drop() {
    unsafe EVP_MD_CTX_free(context)
    unsafe context = nil
  }
}

extension TransferError.Code {
  /// The crypto library of the system cannot compute a hash.
  public static let hashUnavailable = Self(rawValue: "hash-unavailable")
}
