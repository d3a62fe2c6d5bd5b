#if canImport(Glibc)
  package import Glibc
#else
  package import Darwin
#endif

/// A value behind a POSIX mutex, with the interface of `Synchronization.Mutex`.
///
/// On Linux that one waits in a library that the thread sanitizer does not see into (Swift 6.3), so the sanitizer reports every lock
/// that was contended as a race. It does see POSIX mutexes.
/// Inlinable, because every packet of a simulated link takes a few of them, and a generic that is not specialized costs more than the lock.
// The value is reached only between lock and unlock, and it was sent in when the mutex was made: so threads may share it.
@safe package struct PosixMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline let value: UnsafeMutablePointer<Value>

  @inlinable package init(_ initialValue: consuming sending Value) {
    unsafe mutex = .allocate(capacity: 1)
    unsafe value = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe value.initialize(to: initialValue)
    let result = unsafe pthread_mutex_init(mutex, nil)
    precondition(result == 0, "pthread_mutex_init(3) has failed")
  }

  @inlinable deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe value.deinitialize(count: 1)
    unsafe value.deallocate()
    unsafe mutex.deallocate()
  }

  @inlinable package borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try unsafe body(&value.pointee)
  }
}
