internal import Foundation
internal import SystemCalls

/// The folder in which records of unfinished transfers are kept, one file a transfer and device.
public struct TransferJournal: Sendable {
  /// A longer record is refused unread, in bytes. One with the most objects, their longest paths all escaped, is shorter.
  static let longestRecord = 1 << 25

  /// One file of the folder: a record, or why there is none to be had.
  public struct Entry: Sendable {
    /// The file.
    public let path: String
    /// What it holds; a failure has the code `damagedState` or `storage`.
    public let record: Result<TransferRecord, TransferError>
  }

  /// The folder.
  public let directory: String
  private let operations: any FileOperations

  /// A journal in `directory`, which is made when the first record is.
  public init(directory: String) {
    self.init(directory: directory, operations: SystemFileOperations())
  }

  init(directory: String, operations: any FileOperations) {
    self.directory = directory
    self.operations = operations
  }

  /// Claims a transfer to a device for this process, until the claim is completed, released, or gone.
  ///
  /// - Throws: `locked`, naming the process, if another one works on it; `storage` if the folder cannot be used.
  public func claim(
    _ transferID: SHA256Digest, device: TransferManifest.Target
  ) throws(TransferError) -> TransferClaim {
    try operations.makeDirectories(directory)
    let stem = "\(directory)/\(try Self.stem(transferID, device))"
    let lock = try FileLock(
      path: "\(stem).lock", purpose: "this transfer to \((device.name ?? device.identifier ?? "").printable)",
      operations: operations)
    let file = AtomicFile(path: "\(stem).json", permissions: 0o600, operations: operations)
    try file.removeLeftovers()
    return TransferClaim(
      transferID: transferID, device: device, lock: lock, file: file, operations: operations)
  }

  /// All records, the last updated first and the damaged ones at the end.
  public func entries() throws(TransferError) -> [Entry] {
    let names: [String]
    do {
      let folder = try OpenFile(directory, flags: O_RDONLY | O_DIRECTORY, operations)
      names = try operations.names(in: folder.descriptor)
    } catch {
      if error.number == ENOENT { return [] }
      throw .failure(error, to: "list", directory)
    }
    let records = names.filter { name in
      // The known devices are kept in the same folder.
      name.hasSuffix(".json") && !name.hasPrefix(".") && name != KnownDevices.fileName
    }
    let entries = records.sorted().compactMap { entry($0) }
    return entries.sorted { first, second in
      switch (first.record, second.record) {
      case (.success(let first), .success(let second)): first.updated > second.updated
      case (.success, .failure): true
      case (.failure, _): false
      }
    }
  }

  /// Removes a record, readable or not. The device keeps what it has of the objects.
  ///
  /// - Throws: `locked`, naming the process, while one works on the transfer: the record stays; `storage` if it cannot be removed.
  public func forget(_ entry: Entry) throws(TransferError) {
    let stem = entry.path.hasSuffix(".json") ? String(entry.path.dropLast(5)) : entry.path
    let lock = try FileLock(
      path: "\(stem).lock", purpose: "the transfer of \(entry.path.printable)", operations: operations)
    let file = AtomicFile(path: entry.path, permissions: 0o600, operations: operations)
    try file.removeLeftovers()
    try Self.remove(file, lock, operations)
  }

  /// Removes a record's file and then its lock.
  fileprivate static func remove(
    _ file: AtomicFile, _ lock: FileLock, _ operations: any FileOperations
  ) throws(TransferError) {
    let (parent, name) = file.path.splitLastComponent
    do throws(SystemError) {
      let folder = try OpenFile(parent, flags: O_RDONLY | O_DIRECTORY, operations)
      do throws(SystemError) {
        try operations.remove(name, in: folder.descriptor)
      } catch {
        if error.number != ENOENT { throw error }
      }
      lock.removeAndRelease()
      try operations.sync(folder.descriptor)
    } catch {
      throw .failure(error, to: "remove", file.path)
    }
  }

  /// Nil for one that was completed while the folder was being read.
  private func entry(_ name: String) -> Entry? {
    let path = "\(directory)/\(name)"
    do {
      guard let text = try AtomicFile(path: path, operations: operations).read(limit: Self.longestRecord)
      else {
        return nil
      }
      return Entry(path: path, record: .success(try TransferRecord(decoding: text, document: path)))
    } catch {
      return Entry(path: path, record: .failure(error))
    }
  }

  /// The name of a record's file without what comes after the dot.
  static func stem(
    _ transferID: SHA256Digest, _ device: TransferManifest.Target
  ) throws(TransferError) -> String {
    let key = device.identifier.map { "identifier:\($0)" } ?? "name:\(device.name ?? "")"
    let hash = try SHA256Hasher.digest(of: Data(key.utf8))
    return "\(transferID.hex.prefix(32))-\(hash.hex.prefix(16))"
  }
}

/// The right to work on one transfer to one device, and its record.
public final class TransferClaim: Sendable {
  private let transferID: SHA256Digest
  private let device: TransferManifest.Target
  private let lock: FileLock
  private let file: AtomicFile
  private let operations: any FileOperations

  init(
    transferID: SHA256Digest, device: TransferManifest.Target, lock: FileLock, file: AtomicFile,
    operations: any FileOperations
  ) {
    self.transferID = transferID
    self.device = device
    self.lock = lock
    self.file = file
    self.operations = operations
  }

  /// The file of the record.
  public var path: String { file.path }

  /// The record of an earlier attempt; nil if there was none.
  ///
  /// - Throws: `damagedState` if the file is torn, empty or of an unknown version; ``save(_:)`` replaces it.
  public func load() throws(TransferError) -> TransferRecord? {
    do throws(TransferError) {
      guard let text = try file.read(limit: TransferJournal.longestRecord) else { return nil }
      let record = try TransferRecord(decoding: text, document: file.path)
      guard record.transferID == transferID else {
        throw TransferError(.damagedState, "\(file.path.printable) is the record of another transfer")
      }
      return record
    } catch {
      guard error.code == .damagedState else { throw error }
      throw TransferError(
        .damagedState, error.message,
        advice: error.advice
          ?? "remove that file and push again: the transfer goes on where the device stands")
    }
  }

  /// Writes the record, durably. It takes a few milliseconds on most disks: meant for about once a second, not for each receipt.
  public func save(_ record: TransferRecord) throws(TransferError) {
    guard record.transferID == transferID else {
      throw TransferError(.invalidArgument, "the record is of another transfer than the claim")
    }
    try file.write(record.encoded())
  }

  /// Removes the record, because the device has verified everything, and ends the claim.
  public func complete() throws(TransferError) { try TransferJournal.remove(file, lock, operations) }

  /// Ends the claim and keeps the record. Idempotent; implied when the last reference goes.
  public func release() { lock.release() }
}
