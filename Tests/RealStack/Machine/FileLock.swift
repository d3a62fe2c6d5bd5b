internal import Foundation
internal import Glibc

/// flock(2) on a file that is made for it.
struct FileLock: Sendable {
  struct Failure: Error, CustomStringConvertible {
    let path: String
    let errorNumber: Int32
    var description: String { "\(path): \(unsafe String(cString: strerror(errorNumber)))" }
  }

  private let descriptor: Int32

  /// Waits for whoever holds it, on a thread of its own.
  static func waiting(for file: URL) async throws -> FileLock {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Result { try FileLock(file.path, LOCK_EX) })
      }
    }
  }

  /// Nil where somebody holds it.
  static func trying(_ file: URL) -> FileLock? { try? FileLock(file.path, LOCK_EX | LOCK_NB) }

  private init(_ path: String, _ operation: Int32) throws {
    descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Failure(path: path, errorNumber: errno) }
    while flock(descriptor, operation) != 0 {
      guard errno == EINTR else {
        let errorNumber = errno
        close(descriptor)
        throw Failure(path: path, errorNumber: errorNumber)
      }
    }
  }

  func release() { close(descriptor) }
}
