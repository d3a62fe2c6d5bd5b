import Foundation
import Locking
import SystemCalls

@testable import BulkTransfer

/// A file system in memory that knows what fsync is for: it forgets at a power cut what was not synced, and fails when it is told to.
///
/// One folder, `/d`, holds files and no folders.
final class VolatileFileSystem: FileOperations {
  /// What is left of changes that were not synced.
  enum Outage: CaseIterable, Sendable {
    /// The process is killed: the machine keeps everything.
    case kill
    /// The power goes: unsynced contents and unsynced names are gone.
    case powerLosesAll
    /// The power goes: names were written by chance, contents were not.
    case powerKeepsNames
    /// The power goes: contents were written by chance, names were not.
    case powerKeepsContents
  }

  private struct Inode {
    var contents = Data()
    var durableContents = Data()
  }

  private struct State {
    var inodes: [UInt64: Inode] = [:]
    var names: [String: UInt64] = [:]
    var durableNames: [String: UInt64] = [:]
    var lastInode: UInt64 = 1
    /// Descriptor to inode; 1 is the folder.
    var descriptors: [Int32: UInt64] = [:]
    var locks: [UInt64: Int32] = [:]
    var lastDescriptor: Int32 = 100
    /// Changing calls that still succeed; then `code` is thrown.
    var budget = Int.max
    var code: Int32 = EIO
    var failsOnce = false
    var changes = 0
    var capacity = Int.max
    var openCode: Int32?
  }

  private let state = PosixMutex(State())
  private static let folder: UInt64 = 1

  /// Fails with `code` after `count` more changing calls: once, or until ``recover(from:)``.
  func fail(after count: Int, code: Int32 = EIO, once: Bool = false) {
    state.withLock {
      $0.budget = count
      $0.code = code
      $0.failsOnce = once
    }
  }

  /// Makes each open fail.
  func failOpens(_ code: Int32?) { state.withLock { $0.openCode = code } }

  /// Bounds the bytes of all files together.
  func setCapacity(_ bytes: Int) { state.withLock { $0.capacity = bytes } }

  /// Number of changing calls so far.
  var changes: Int { state.withLock { $0.changes } }

  /// What a restart after an outage finds.
  func recover(from outage: Outage) {
    state.withLock { state in
      state.budget = .max
      state.descriptors = [:]
      state.locks = [:]
      if outage == .powerLosesAll || outage == .powerKeepsNames {
        state.inodes = state.inodes.mapValues {
          Inode(contents: $0.durableContents, durableContents: $0.durableContents)
        }
      }
      if outage == .powerLosesAll || outage == .powerKeepsContents { state.names = state.durableNames }
      state.durableNames = state.names
    }
  }

  /// The names in the folder, sorted.
  var names: [String] { state.withLock { $0.names.keys.sorted() } }

  /// The contents of a file; nil if there is none.
  func contents(_ name: String) -> Data? {
    state.withLock { state in state.names[name].flatMap { state.inodes[$0]?.contents } }
  }

  /// Puts a file there, durably.
  func put(_ contents: Data, _ name: String) {
    state.withLock { state in
      state.lastInode += 1
      state.inodes[state.lastInode] = Inode(contents: contents, durableContents: contents)
      state.names[name] = state.lastInode
      state.durableNames[name] = state.lastInode
    }
  }

  // MARK: FileOperations

  func open(_ name: String, in directory: Int32?, flags: Int32, mode: UInt32) throws(SystemError) -> Int32 {
    try change("openat", counts: flags & (O_CREAT | O_TRUNC) != 0) { state throws(SystemError) in
      if let code = state.openCode { throw SystemError("openat", code) }
      let inode: UInt64
      if let name = Self.component(name) {
        if let found = state.names[name] {
          if flags & O_EXCL != 0 { throw SystemError("openat", EEXIST) }
          inode = found
          if flags & O_TRUNC != 0 { state.inodes[inode]?.contents = Data() }
        } else {
          guard flags & O_CREAT != 0 else { throw SystemError("openat", ENOENT) }
          state.lastInode += 1
          inode = state.lastInode
          state.inodes[inode] = Inode()
          state.names[name] = inode
        }
      } else {
        inode = Self.folder
      }
      state.lastDescriptor += 1
      state.descriptors[state.lastDescriptor] = inode
      return state.lastDescriptor
    }
  }

  func close(_ descriptor: Int32) {
    state.withLock { state in
      if let inode = state.descriptors.removeValue(forKey: descriptor), state.locks[inode] == descriptor {
        state.locks[inode] = nil
      }
    }
  }

  func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    try look("fstat", descriptor) { state, inode in Self.status(inode, state) }
  }

  func status(
    of name: String, in directory: Int32?, followingLinks: Bool
  ) throws(SystemError) -> FileStatus {
    try change("fstatat", counts: false) { state throws(SystemError) in
      guard let name = Self.component(name) else { return Self.status(Self.folder, state) }
      guard let inode = state.names[name] else { throw SystemError("fstatat", ENOENT) }
      return Self.status(inode, state)
    }
  }

  func read(_ descriptor: Int32, at offset: UInt64, count: Int) throws(SystemError) -> Data {
    try look("pread", descriptor) { state, inode in
      Data((state.inodes[inode]?.contents ?? Data()).dropFirst(Int(offset)).prefix(count))
    }
  }

  func write(_ descriptor: Int32, _ bytes: Data, at offset: UInt64) throws(SystemError) {
    try change("pwrite") { state throws(SystemError) in
      guard let inode = state.descriptors[descriptor] else { throw SystemError("pwrite", EBADF) }
      var contents = state.inodes[inode]?.contents ?? Data()
      let (start, end) = (Int(offset), Int(offset) + bytes.count)
      if contents.count < end { contents.append(Data(count: end - contents.count)) }
      contents.replaceSubrange(start..<end, with: bytes)
      let others = state.names.values.filter { $0 != inode }.reduce(0) {
        $0 + (state.inodes[$1]?.contents.count ?? 0)
      }
      guard contents.count <= state.capacity - others else { throw SystemError("pwrite", ENOSPC) }
      state.inodes[inode]?.contents = contents
    }
  }

  func truncate(_ descriptor: Int32, to size: UInt64) throws(SystemError) {
    try change("ftruncate") { state throws(SystemError) in
      guard let inode = state.descriptors[descriptor] else {
        throw SystemError("ftruncate", EBADF)
      }
      let contents = (state.inodes[inode]?.contents ?? Data()).prefix(Int(size))
      state.inodes[inode]?.contents = contents + Data(count: Int(size) - contents.count)
    }
  }

  func sync(_ descriptor: Int32) throws(SystemError) {
    try change("fsync") { state throws(SystemError) in
      guard let inode = state.descriptors[descriptor] else { throw SystemError("fsync", EBADF) }
      if inode == Self.folder {
        state.durableNames = state.names
      } else if let contents = state.inodes[inode]?.contents {
        state.inodes[inode]?.durableContents = contents
      }
    }
  }

  func syncContents(_ descriptor: Int32) throws(SystemError) { try sync(descriptor) }

  func forgetCached(_ descriptor: Int32) {}

  func rename(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {
    try change("renameat") { state throws(SystemError) in
      guard let inode = state.names[name] else { throw SystemError("renameat", ENOENT) }
      state.names[newName] = inode
      if name != newName { state.names[name] = nil }
    }
  }

  func renameExclusively(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {
    try change("renameat2") { state throws(SystemError) in
      guard let inode = state.names[name] else { throw SystemError("renameat2", ENOENT) }
      guard state.names[newName] == nil else { throw SystemError("renameat2", EEXIST) }
      state.names[newName] = inode
      state.names[name] = nil
    }
  }

  func exchange(_ name: String, with other: String, in directory: Int32) throws(SystemError) {
    try change("renameat2") { state throws(SystemError) in
      guard let first = state.names[name], let second = state.names[other] else {
        throw SystemError("renameat2", ENOENT)
      }
      (state.names[name], state.names[other]) = (second, first)
    }
  }

  func target(ofLink path: String) throws(SystemError) -> String { throw SystemError("readlink", EINVAL) }

  func link(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {
    try change("linkat") { state throws(SystemError) in
      guard let inode = state.names[name] else { throw SystemError("linkat", ENOENT) }
      guard state.names[newName] == nil else { throw SystemError("linkat", EEXIST) }
      state.names[newName] = inode
    }
  }

  func remove(_ name: String, in directory: Int32) throws(SystemError) {
    try change("unlinkat") { state throws(SystemError) in
      guard state.names.removeValue(forKey: name) != nil else {
        throw SystemError("unlinkat", ENOENT)
      }
    }
  }

  func makeDirectory(_ name: String, in directory: Int32?, mode: UInt32) throws(SystemError) {
    throw SystemError("mkdirat", EEXIST)
  }

  func names(in directory: Int32) throws(SystemError) -> [String] {
    try look("readdir", directory) { state, _ in state.names.keys.sorted() }
  }

  func lock(_ descriptor: Int32) throws(SystemError) -> Bool {
    try change("flock", counts: false) { state throws(SystemError) in
      guard let inode = state.descriptors[descriptor] else { throw SystemError("flock", EBADF) }
      if let holder = state.locks[inode], holder != descriptor { return false }
      state.locks[inode] = descriptor
      return true
    }
  }

  func unlock(_ descriptor: Int32) {
    state.withLock { state in
      guard let inode = state.descriptors[descriptor], state.locks[inode] == descriptor else { return }
      state.locks[inode] = nil
    }
  }

  func freeSpace(of descriptor: Int32) throws(SystemError) -> UInt64 {
    try look("fstatvfs", descriptor) { state, _ in
      let used = state.names.values.reduce(0) { $0 + (state.inodes[$1]?.contents.count ?? 0) }
      return UInt64(max(state.capacity - used, 0))
    }
  }

  // MARK: Inside

  /// The name in the folder; nil for the folder itself and those above.
  private static func component(_ path: String) -> String? {
    if path == "/d" || path == "/" || path == "." { return nil }
    return path.splitLastComponent.name
  }

  private static func status(_ inode: UInt64, _ state: State) -> FileStatus {
    FileStatus(
      kind: inode == folder ? .directory : .regular, size: UInt64(state.inodes[inode]?.contents.count ?? 0),
      device: 1, inode: inode, links: state.names.values.count { $0 == inode }, modified: 0)
  }

  private func look<Result>(
    _ call: String, _ descriptor: Int32, _ body: (State, UInt64) -> Result
  ) throws(SystemError) -> Result {
    let now = state.withLock { $0 }
    guard let inode = now.descriptors[descriptor] else { throw SystemError(call, EBADF) }
    return body(now, inode)
  }

  private func change<Result>(
    _ call: String, counts: Bool = true, _ body: (inout State) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try state.withLock { state throws(SystemError) in
      if counts {
        guard state.budget > 0 else {
          if state.failsOnce { state.budget = .max }
          throw SystemError(call, state.code)
        }
        state.budget -= 1
        state.changes += 1
      }
      return try body(&state)
    }
  }
}
