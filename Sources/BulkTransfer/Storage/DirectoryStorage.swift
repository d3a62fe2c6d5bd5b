internal import Foundation
internal import Locking
internal import SystemCalls

/// A folder that received objects are put into.
///
/// A part is a hidden file with a state file beside it (`docs/files.md`); the final name appears by a link or a rename, after the whole was
/// verified and fsynced. One process uses a folder at a time. Everything is done relative to the folder as it was opened, and no symbolic
/// link in it is followed.
public final class DirectoryStorage: ReceiverStorage {
  /// What happens if another file has the name already. A file with the very same contents is always "there already".
  public enum ExistingFilePolicy: String, Hashable, Sendable, CaseIterable {
    /// The object is refused.
    case refuse
    /// The file is replaced once the object is whole and verified.
    case replace
    /// The object gets a number: `fw-1.bin`.
    case number
  }

  /// What is taken.
  public struct Policy: Hashable, Sendable {
    /// What happens if another file has the name.
    public var existingFile: ExistingFilePolicy
    /// The largest object in bytes.
    public var largestObject: UInt64
    /// Unfinished parts that are kept; beyond that the one that was idle longest makes room.
    public var mostParts: Int

    public init(
      existingFile: ExistingFilePolicy = .refuse, largestObject: UInt64 = 1 << 32, mostParts: Int = 16
    ) {
      self.existingFile = existingFile
      self.largestObject = largestObject
      self.mostParts = max(mostParts, 1)
    }
  }

  /// The folder as it was given.
  public let path: String
  /// What is taken.
  public let policy: Policy
  let folder: OpenFile
  let operations: any FileOperations
  private let lock: FileLock
  /// Hashes of the parts in use.
  private let partsInUse = PosixMutex<Set<SHA256Digest>>([])
  let knownFiles = PosixMutex(KnownFiles())

  /// The most numbers that are tried for a name.
  static let highestNumber = 999
  static let lockName = ".bluehaul.lock"

  /// Opens the folder at `path`, making it if it does not exist.
  ///
  /// - Throws: `locked`, with the pid, if another process receives into it; `storage` or `diskFull` if it cannot be used.
  public convenience init(path: String, policy: Policy = Policy()) throws(TransferError) {
    try self.init(path: path, policy: policy, operations: SystemFileOperations())
  }

  init(path: String, policy: Policy = Policy(), operations: any FileOperations) throws(TransferError) {
    self.path = path
    self.policy = policy
    self.operations = operations
    do throws(SystemError) {
      folder = try Self.openFolder(path, operations)
    } catch {
      throw .failure(error, to: "receive into", path)
    }
    lock = try FileLock(
      named: Self.lockName, in: folder, path: path, purpose: "the folder \(path.printable)",
      operations: operations)
  }

  private static func openFolder(
    _ path: String, _ operations: any FileOperations
  ) throws(SystemError) -> OpenFile {
    do throws(SystemError) {
      return try OpenFile(path, flags: O_RDONLY | O_DIRECTORY, operations)
    } catch {
      guard error.number == ENOENT else { throw error }
    }
    try operations.makeDirectory(path, in: nil, mode: 0o777)
    let parent = try OpenFile(path.splitLastComponent.parent, flags: O_RDONLY | O_DIRECTORY, operations)
    try operations.sync(parent.descriptor)
    return try OpenFile(path, flags: O_RDONLY | O_DIRECTORY, operations)
  }

  public func limits() throws(TransferError) -> StorageLimits {
    do throws(SystemError) {
      return StorageLimits(
        largestObject: policy.largestObject, freeSpace: try operations.freeSpace(of: folder.descriptor))
    } catch {
      throw .failure(error, to: "ask for the free space of", path)
    }
  }

  public func open(_ object: ReceivedObject) throws(TransferError) -> StorageOpening {
    let name = try ReceivedName(checking: object.name)
    guard object.size <= policy.largestObject else {
      throw TransferError(
        .objectTooLarge, "the object has \(object.size) bytes, at most \(policy.largestObject) are taken")
    }
    guard partsInUse.withLock({ $0.insert(object.sha256).inserted }) else {
      throw TransferError(
        .locked, "the object \(object.sha256.hex.prefix(16)) is being received over another connection",
        advice: "wait until that transfer has ended", isRetriable: true)
    }
    do throws(TransferError) {
      if let present = try existing(object, name: name) {
        try removePart(object.sha256)
        release(object.sha256)
        return .complete(location: "\(path)/\(present)")
      }
      return .part(try openPart(object, name), busy: .zero)
    } catch {
      release(object.sha256)
      throw error
    }
  }

  /// An object that cannot be taken leaves nothing behind, and no other part has to go for it.
  private func openPart(_ object: ReceivedObject, _ name: ReceivedName) throws(TransferError) -> DirectoryPart
  {
    let isNew = try kind(of: Self.partName(object.sha256), name) == nil
    if isNew {
      try checkSpace(for: object.size)
      try makeRoomForPart()
    }
    do throws(TransferError) {
      return try DirectoryPart(object, name: name, in: self)
    } catch {
      if isNew { try? removePart(object.sha256) }
      throw error
    }
  }

  /// Whether so many bytes of an object that are missing would fit.
  func checkSpace(for missing: UInt64) throws(TransferError) {
    let free = try limits().freeSpace
    guard missing <= free else {
      throw TransferError(
        .diskFull, "\(free) bytes are free at the receiver, the rest of the object needs \(missing)",
        advice: "free space there; what was received is kept", isRetriable: true)
    }
  }

  /// Lets another one open the part.
  func release(_ sha256: SHA256Digest) {
    partsInUse.withLock { $0 = $0.subtracting([sha256]) }
  }
}

// MARK: Files that are there

extension DirectoryStorage {
  /// The name under which the very object is there already; nil if it is not and may be received.
  ///
  /// - Throws: `nameTaken` if something else has the name and the policy keeps it.
  private func existing(_ object: ReceivedObject, name: ReceivedName) throws(TransferError) -> String? {
    var candidate = name.text
    for number in 1...Self.highestNumber {
      guard let kind = try kind(of: candidate, name) else { return nil }
      if kind == .regular, try holds(candidate, object) {
        try makeDurable(candidate)
        return candidate
      }
      switch policy.existingFile {
      case .refuse: throw taken(candidate)
      case .replace:
        // A rename cannot replace a folder, and whatever else is there was not put there by a receiver.
        guard kind == .regular else { throw taken(candidate) }
        return nil
      case .number: candidate = name.numbered(number)
      }
    }
    throw taken(name.text)
  }

  func taken(_ name: String) -> TransferError {
    TransferError(
      .nameTaken, "another file named \(name.printable) is there already",
      advice: "send it under another name, or let the receiver replace or number files")
  }

  private func kind(of candidate: String, _ name: ReceivedName) throws(TransferError) -> FileKind? {
    do throws(SystemError) {
      return try operations.status(of: candidate, in: folder.descriptor, followingLinks: false).kind
    } catch {
      if error.number == ENOENT { return nil }
      if error.number == ENAMETOOLONG {
        throw TransferError(
          .nameNotAcceptable, "the name \(name.text.printable) is too long for the receiver's file system",
          advice: "send it under another name")
      }
      throw .failure(error, to: "look at", "\(path)/\(candidate)")
    }
  }

  /// Whether the file has the object's contents; one that cannot be read has not.
  private func holds(_ candidate: String, _ object: ReceivedObject) throws(TransferError) -> Bool {
    let hasher = SHA256Hasher()
    do throws(SystemError) {
      let file = try OpenFile(
        candidate, in: folder, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK, operations)
      let status = try operations.status(of: file.descriptor)
      guard status.kind == .regular, status.size == object.size else { return false }
      var offset: UInt64 = 0
      while offset < object.size {
        let bytes = try operations.read(file.descriptor, at: offset, count: 1 << 20)
        if bytes.isEmpty { return false }
        hasher.update(bytes)
        offset += UInt64(bytes.count)
      }
    } catch {
      return false
    }
    return try hasher.finalize() == object.sha256
  }
}

extension DirectoryStorage {
  /// Whoever has put a file there may not have waited for the disk, and it is about to be called verified.
  private func makeDurable(_ name: String) throws(TransferError) {
    do throws(SystemError) {
      let file = try OpenFile(name, in: folder, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK, operations)
      try operations.sync(file.descriptor)
      try operations.sync(folder.descriptor)
    } catch {
      throw .failure(error, to: "make durable", "\(path)/\(name)")
    }
  }
}

// MARK: Parts that are there

extension DirectoryStorage {
  /// The hidden file of a part.
  static func partName(_ sha256: SHA256Digest) -> String { ".bluehaul-\(sha256.hex.prefix(32)).part" }
  /// The file that says how much of it is durable.
  static func stateName(_ sha256: SHA256Digest) -> String { ".bluehaul-\(sha256.hex.prefix(32)).state" }

  /// Removes what is stored of an object, if anything is.
  func removePart(_ sha256: SHA256Digest) throws(TransferError) {
    do throws(SystemError) {
      let hadPart = try removeIfPresent(Self.partName(sha256))
      let hadState = try removeIfPresent(Self.stateName(sha256))
      if hadPart || hadState { try operations.sync(folder.descriptor) }
    } catch {
      throw .failure(error, to: "remove a part in", path)
    }
  }

  /// Whether there was something to remove.
  func removeIfPresent(_ name: String) throws(SystemError) -> Bool {
    do throws(SystemError) {
      try operations.remove(name, in: folder.descriptor)
      return true
    } catch {
      if error.number == ENOENT { return false }
      throw error
    }
  }

  /// Removes the parts that were idle longest, so that a new one is within the limit.
  func makeRoomForPart() throws(TransferError) {
    let inUse = partsInUse.withLock { Set($0.map(Self.partName)) }
    do throws(SystemError) {
      let names = try operations.names(in: folder.descriptor)
      let parts = names.filter { $0.hasPrefix(".bluehaul-") && $0.hasSuffix(".part") }
      guard parts.count >= policy.mostParts else { return }
      var idle: [(name: String, modified: Int64)] = []
      for name in parts where !inUse.contains(name) {
        let status = try operations.status(of: name, in: folder.descriptor, followingLinks: false)
        idle.append((name, status.modified))
      }
      idle.sort { ($0.modified, $0.name) < ($1.modified, $1.name) }
      for part in idle.prefix(parts.count - policy.mostParts + 1) {
        _ = try removeIfPresent(part.name)
        _ = try removeIfPresent("\(part.name.dropLast(4))state")
      }
    } catch {
      throw .failure(error, to: "tidy up in", path)
    }
  }
}
