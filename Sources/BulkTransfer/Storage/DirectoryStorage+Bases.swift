internal import Foundation

extension DirectoryStorage {
  /// Files of the right size that are hashed in the search for a base.
  private static let baseCandidates = 16

  /// A file in the folder with these contents, under whatever name; hidden ones are none of the finished objects.
  public func base(_ sha256: SHA256Digest, size: UInt64) throws(TransferError) -> (any ByteSource)? {
    var left = Self.baseCandidates
    do throws(SystemError) {
      for name in try operations.names(in: folder.descriptor).sorted() where !name.hasPrefix(".") && left > 0
      {
        guard let file = try openBase(name, size: size) else { continue }
        left -= 1
        let source = StoredFile(file, size: size, path: "\(path)/\(name)")
        if let digest = source.digest, digest == sha256 { return source }
      }
    } catch {
      throw .failure(error, to: "look for a file in", path)
    }
    return nil
  }

  /// Nil for what is no regular file of that size, or cannot be opened.
  private func openBase(_ name: String, size: UInt64) throws(SystemError) -> OpenFile? {
    guard let status = try? operations.status(of: name, in: folder.descriptor, followingLinks: false),
      status.kind == .regular, status.size == size,
      let file = try? OpenFile(name, in: folder, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK, operations)
    else { return nil }
    let opened = try operations.status(of: file.descriptor)
    return opened.kind == .regular && opened.size == size ? file : nil
  }
}

/// A received file, kept open: it can be read after another one has taken its name.
private final class StoredFile: ByteSource {
  let size: UInt64
  private let file: OpenFile
  private let path: String

  init(_ file: OpenFile, size: UInt64, path: String) {
    self.file = file
    self.size = size
    self.path = path
  }

  func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
    try checkRange(at: offset, count: count)
    do throws(SystemError) {
      let bytes = try file.operations.read(file.descriptor, at: offset, count: count)
      guard bytes.count == count else {
        throw SystemError(call: "pread", code: EIO)
      }
      return bytes
    } catch {
      throw .failure(error, to: "read", path)
    }
  }

  /// Nil where it cannot be read.
  var digest: SHA256Digest? {
    let hasher = SHA256Hasher()
    do throws(TransferError) {
      try forEachBlock(step: 1 << 20) { block throws(TransferError) in hasher.update(block) }
      return try hasher.finalize()
    } catch {
      return nil
    }
  }
}
