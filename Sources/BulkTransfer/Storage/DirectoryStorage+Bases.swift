internal import Foundation
internal import Locking
internal import SystemCalls

/// What the files were that were read in earlier searches for a base: it says where to look first, and decides nothing.
struct KnownFiles: Sendable {
  private static let most = 1024
  private var digests: [FileStatus: SHA256Digest] = [:]

  /// The hash of the file when it was read, if it looks as it did then.
  subscript(_ status: FileStatus) -> SHA256Digest? {
    get { digests[status] }
    set {
      if digests.count >= Self.most { digests = [:] }
      digests[status] = newValue
    }
  }
}

extension DirectoryStorage {
  /// Octets that are read at most in the search for a base of a size.
  static func searchBudget(for size: UInt64) -> UInt64 { max(4 * min(size, 1 << 48), 1 << 28) }

  /// What a file costs at least, however small it is.
  static let leastSearchCost: UInt64 = 1 << 16

  /// A file in the folder with these contents, under whatever name; hidden ones are none of the finished objects.
  public func base(_ wanted: BaseRequest) throws(TransferError) -> ProvedBase? {
    try base(wanted, budget: Self.searchBudget(for: wanted.size))
  }

  func base(_ wanted: BaseRequest, budget: UInt64) throws(TransferError) -> ProvedBase? {
    var left = budget
    for (name, status) in try baseCandidates(wanted) {
      guard left >= Self.leastSearchCost || left == budget else { return nil }
      let cost = max(wanted.size, Self.leastSearchCost)
      left -= min(left, cost)
      guard let file = openBase(name, status) else { continue }
      let source = StoredFile(file, size: wanted.size, path: "\(path)/\(name)")
      guard let image = try? BaseImage(of: source, challenge: wanted.challenge) else { continue }
      knownFiles.withLock { $0[status] = image.sha256 }
      if let found = ProvedBase(source, image, answering: wanted) { return found }
    }
    return nil
  }

  /// Files of the right size: those that were the base when they were last read, then the newest.
  private func baseCandidates(
    _ wanted: BaseRequest
  ) throws(TransferError) -> [(name: String, status: FileStatus)] {
    let names: [String]
    do throws(SystemError) {
      names = try operations.names(in: folder.descriptor)
    } catch {
      throw .failure(error, to: "look for a file in", path)
    }
    var found: [(name: String, status: FileStatus, rank: Int)] = []
    for name in names where !name.hasPrefix(".") {
      guard
        let status = try? operations.status(of: name, in: folder.descriptor, followingLinks: false),
        status.kind == .regular, status.size == wanted.size
      else { continue }
      let known = knownFiles.withLock { $0[status] }
      found.append((name, status, known == nil ? 1 : known == wanted.sha256 ? 0 : 2))
    }
    found.sort { ($0.rank, $1.status.modified, $0.name) < ($1.rank, $0.status.modified, $1.name) }
    return found.map { ($0.name, $0.status) }
  }

  /// Nil for what cannot be opened, or is another file by now.
  private func openBase(_ name: String, _ status: FileStatus) -> OpenFile? {
    guard
      let file = try? OpenFile(name, in: folder, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK, operations),
      let opened = try? operations.status(of: file.descriptor), opened.kind == .regular,
      opened.size == status.size, opened.inode == status.inode
    else { return nil }
    return file
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
        throw SystemError("pread", EIO)
      }
      return bytes
    } catch {
      throw .failure(error, to: "read", path)
    }
  }
}
