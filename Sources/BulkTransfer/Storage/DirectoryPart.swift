internal import Foundation
internal import Locking
internal import SystemCalls

/// A part in a folder: a hidden file with the bytes and one that says how many of them count.
final class DirectoryPart: ReceiverPart {
  private struct Inside {
    /// Nil once the part has ended.
    var files: Files?
    var state: PartState
  }

  private struct Files {
    var part: OpenFile
    var state: OpenFile
  }

  let object: ReceivedObject
  private let name: ReceivedName
  private let storage: DirectoryStorage
  private let inside: PosixMutex<Inside>

  /// Opens the part of an object, or begins it.
  init(_ object: ReceivedObject, name: ReceivedName, in storage: DirectoryStorage) throws(TransferError) {
    self.object = object
    self.name = name
    self.storage = storage
    let opened: Inside
    var file = DirectoryStorage.partName(object.sha256)
    do throws(SystemError) {
      opened = try Self.openFiles(object, storage, at: &file)
    } catch {
      throw .failure(error, to: "store a part in", "\(storage.path)/\(file)")
    }
    try storage.checkSpace(for: object.size - opened.state.durable)
    inside = PosixMutex(opened)
  }

  deinit { close() }

  var durableOffset: UInt64 { inside.withLock { $0.state.durable } }

  func write(_ bytes: Data, at offset: UInt64) throws(TransferError) -> Duration {
    try use("store") { inside, files, operations in
      let count = UInt64(bytes.count)
      guard offset >= inside.state.durable, offset <= object.size, count <= object.size - offset else {
        throw TransferError.rangeOutside("write", "\(count) bytes at \(offset)", of: object)
      }
      try operations.write(files.part.descriptor, bytes, at: offset)
    }
    return .zero
  }

  func sync(through offset: UInt64) throws(TransferError) -> Duration {
    try use("store") { inside, files, operations in
      guard offset >= inside.state.durable, offset <= object.size else {
        throw TransferError.rangeOutside("sync", "through \(offset)", of: object)
      }
      if offset == inside.state.durable { return }
      guard try operations.status(of: files.part.descriptor).size >= offset else {
        throw TransferError.rangeOutside("sync", "through \(offset), which was not written,", of: object)
      }
      // The bytes first: a state that promises more than there is would be believed after a power cut.
      try operations.syncContents(files.part.descriptor)
      try Self.record(offset, object, &inside.state, files.state)
    }
    return .zero
  }

  func rewind(to offset: UInt64) throws(TransferError) {
    try use("store") { inside, files, _ in
      guard offset <= inside.state.durable else {
        throw TransferError.rangeOutside("rewind", "to \(offset)", of: object)
      }
      if offset == inside.state.durable { return }
      try Self.record(offset, object, &inside.state, files.state)
    }
  }

  func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
    var bytes = Data()
    try use("read back") { _, files, operations in
      guard count >= 0, offset <= object.size, UInt64(count) <= object.size - offset else {
        throw TransferError.rangeOutside("read", "\(count) bytes at \(offset)", of: object)
      }
      // What is compared with the hash has to come from the disk: the bytes as they were written may still be in memory.
      if offset == 0 { operations.forgetCached(files.part.descriptor) }
      bytes = try operations.read(files.part.descriptor, at: offset, count: count)
      guard bytes.count == count else {
        throw TransferError.rangeOutside(
          "read", "\(count) bytes at \(offset), which were not written,", of: object)
      }
    }
    return bytes
  }

  func commit(verified digest: SHA256Digest) throws(TransferError) -> String {
    var location = ""
    try use("finish") { inside, files, operations in
      try object.checkComplete(digest: digest, durable: inside.state.durable)
      try operations.sync(files.part.descriptor)
      location = "\(storage.path)/\(try giveName())"
      try operations.sync(storage.folder.descriptor)
      // It is done; a state file that stays behind promises nothing, as there is no part with it.
      _ = try? storage.removeIfPresent(DirectoryStorage.stateName(object.sha256))
      inside.files = nil
    }
    storage.release(object.sha256)
    return location
  }

  func discard() throws(TransferError) {
    try use("remove") { inside, _, _ in
      try storage.removePart(object.sha256)
      inside.files = nil
    }
    storage.release(object.sha256)
  }

  func close() {
    let wasOpen = inside.withLock { inside in
      defer { inside.files = nil }
      return inside.files != nil
    }
    if wasOpen { storage.release(object.sha256) }
  }
}

extension DirectoryPart {
  /// Runs `body` on the open files and turns its errors into those of the contract.
  private func use(
    _ action: String, _ body: (inout Inside, Files, any FileOperations) throws -> Void
  ) throws(TransferError) {
    let operations = storage.operations
    let (failure, ended): (TransferError?, Bool) = inside.withLock { inside in
      guard let files = inside.files else {
        let error = TransferError(
          .storage, "the part \(object.sha256.hex.prefix(16)) is no longer open", isRetriable: true)
        return (error, false)
      }
      do {
        try body(&inside, files, operations)
        return (nil, false)
      } catch let error as TransferError {
        return (error, false)
      } catch let error as SystemError {
        // After a failed fsync the kernel may have dropped the bytes, and the next fsync would succeed without them (fsync(2), "Errors"):
        // nothing that is open may be believed any more.
        let ended = ["fsync", "fdatasync"].contains(error.call)
        if ended { inside.files = nil }
        return (.failure(error, to: action, "\(storage.path)/\(name.text)"), ended)
      } catch {
        return (TransferError(.storage, "cannot \(action) \(name.text.printable)"), false)
      }
    }
    if ended { storage.release(object.sha256) }
    if let failure { throw failure }
  }

  /// Opens both files and finds out how much of the part counts; `name` is always the file that is being looked at.
  private static func openFiles(
    _ object: ReceivedObject, _ storage: DirectoryStorage, at name: inout String
  ) throws(SystemError) -> Inside {
    let operations = storage.operations
    let (partName, stateName) = (
      DirectoryStorage.partName(object.sha256), DirectoryStorage.stateName(object.sha256)
    )
    let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK
    var part = try OpenFile(partName, in: storage.folder, flags: flags, mode: 0o666, operations)
    var status = try operations.status(of: part.descriptor)
    if status.kind != .regular || status.links > 1 {
      // An outage came after the final name was given and before the hidden one was taken away: the file is not a part any more, and
      // must not be written to.
      _ = try storage.removeIfPresent(partName)
      part = try OpenFile(partName, in: storage.folder, flags: flags | O_EXCL, mode: 0o666, operations)
      status = try operations.status(of: part.descriptor)
    }
    name = stateName
    let file = try OpenFile(stateName, in: storage.folder, flags: flags, mode: 0o666, operations)
    let bytes = try operations.read(file.descriptor, at: 0, count: 2 * PartState.slotSize)
    let found = PartState.newest(in: bytes)
    var state = found ?? PartState(sequence: 0, object: object, durable: 0)
    var durable = min(state.durable, status.size, object.size)
    if state.sha256 != object.sha256 || state.size != object.size { durable = 0 }
    if found == nil || durable != state.durable || state.size != object.size {
      try record(durable, object, &state, file)
      try operations.sync(storage.folder.descriptor)
    }
    name = partName
    // What lies beyond was never promised to anybody.
    if status.size > durable { try operations.truncate(part.descriptor, to: durable) }
    return Inside(files: Files(part: part, state: file), state: state)
  }

  /// Writes a new durable offset, lasting when it returns.
  private static func record(
    _ durable: UInt64, _ object: ReceivedObject, _ state: inout PartState, _ file: OpenFile
  ) throws(SystemError) {
    let next = PartState(sequence: state.sequence &+ 1, object: object, durable: durable)
    try file.operations.write(file.descriptor, next.encoded, at: next.offset)
    try file.operations.syncContents(file.descriptor)
    state = next
  }

  /// Gives the part a final name that nothing else has, or replaces what has it, as the policy says.
  private func giveName() throws -> String {
    let (operations, folder) = (storage.operations, storage.folder.descriptor)
    let partName = DirectoryStorage.partName(object.sha256)
    if storage.policy.existingFile == .replace {
      // What is no regular file was not there when the object was accepted, and was not put there by a receiver.
      let isNamed = try operations.move(partName, to: name.text, in: folder) { $0.kind == .regular }
      if isNamed { return name.text }
      throw storage.taken(name.text)
    }
    var candidate = name.text
    for number in 1...DirectoryStorage.highestNumber {
      if try operations.moveExclusively(partName, to: candidate, in: folder) { return candidate }
      if storage.policy.existingFile == .refuse { break }
      candidate = name.numbered(number)
    }
    throw storage.taken(name.text)
  }
}
