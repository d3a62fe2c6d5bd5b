import Locking

/// A value that the closures of a test share.
final class Shared<Value: Sendable>: Sendable {
  private let mutex: PosixMutex<Value>

  init(_ value: Value) { mutex = PosixMutex(value) }

  var value: Value {
    get { mutex.withLock { $0 } }
    set { mutex.withLock { $0 = newValue } }
  }

  func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
    mutex.withLock { body(&$0) }
  }
}
