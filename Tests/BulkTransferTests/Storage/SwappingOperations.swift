import Foundation
import Locking
import SystemCalls

@testable import BulkTransfer

/// The file system of this machine, in which somebody changes something at the worst moment.
final class SwappingOperations: FileOperations {
  /// When it is changed.
  enum Moment: Sendable {
    /// Right after a path was opened whose end is this.
    case opened(String)
    /// Right before two names are exchanged for the first time.
    case exchange
  }

  private let base = SystemFileOperations()
  private let moment: Moment
  private let swap: @Sendable () -> Void
  private let hasExchanged = PosixMutex(false)

  /// Does `swap` each time at a moment.
  init(_ moment: Moment, _ swap: @escaping @Sendable () -> Void) {
    self.moment = moment
    self.swap = swap
  }

  func open(_ name: String, in directory: Int32?, flags: Int32, mode: UInt32) throws(SystemError) -> Int32 {
    let descriptor = try base.open(name, in: directory, flags: flags, mode: mode)
    if case .opened(let end) = moment, name.hasSuffix(end) { swap() }
    return descriptor
  }

  func close(_ descriptor: Int32) { base.close(descriptor) }
  func status(of descriptor: Int32) throws(SystemError) -> FileStatus { try base.status(of: descriptor) }
  func status(
    of name: String, in directory: Int32?, followingLinks: Bool
  ) throws(SystemError) -> FileStatus {
    try base.status(of: name, in: directory, followingLinks: followingLinks)
  }
  func read(_ descriptor: Int32, at offset: UInt64, count: Int) throws(SystemError) -> Data {
    try base.read(descriptor, at: offset, count: count)
  }
  func write(_ descriptor: Int32, _ bytes: Data, at offset: UInt64) throws(SystemError) {
    try base.write(descriptor, bytes, at: offset)
  }
  func truncate(_ descriptor: Int32, to size: UInt64) throws(SystemError) {
    try base.truncate(descriptor, to: size)
  }
  func sync(_ descriptor: Int32) throws(SystemError) { try base.sync(descriptor) }
  func syncContents(_ descriptor: Int32) throws(SystemError) { try base.syncContents(descriptor) }
  func forgetCached(_ descriptor: Int32) { base.forgetCached(descriptor) }
  func rename(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {
    try base.rename(name, to: newName, in: directory)
  }
  func renameExclusively(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {
    try base.renameExclusively(name, to: newName, in: directory)
  }
  func exchange(_ name: String, with other: String, in directory: Int32) throws(SystemError) {
    let isFirst = hasExchanged.withLock { hasExchanged in
      defer { hasExchanged = true }
      return !hasExchanged
    }
    if isFirst, case .exchange = moment { swap() }
    try base.exchange(name, with: other, in: directory)
  }
  func target(ofLink path: String) throws(SystemError) -> String { try base.target(ofLink: path) }
  func link(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {
    try base.link(name, to: newName, in: directory)
  }
  func remove(_ name: String, in directory: Int32) throws(SystemError) {
    try base.remove(name, in: directory)
  }
  func makeDirectory(_ name: String, in directory: Int32?, mode: UInt32) throws(SystemError) {
    try base.makeDirectory(name, in: directory, mode: mode)
  }
  func names(in directory: Int32) throws(SystemError) -> [String] { try base.names(in: directory) }
  func lock(_ descriptor: Int32) throws(SystemError) -> Bool { try base.lock(descriptor) }
  func unlock(_ descriptor: Int32) { base.unlock(descriptor) }
  func freeSpace(of descriptor: Int32) throws(SystemError) -> UInt64 { try base.freeSpace(of: descriptor) }
}
