internal import Dispatch
internal import Locking

/// A call that was made with a completion.
public final class DBusCall: Sendable {
  private struct State {
    var isCancelled = false
    var cancel: (@Sendable () -> Void)?
  }

  private let state = PosixMutex(State())

  init() {}

  /// Stops waiting: the completion gets an error of kind ``DBusError/Kind/cancelled``, unless a reply was quicker. Idempotent, from any thread.
  ///
  /// The peer is not told, for D-Bus has no message that says so.
  public func cancel() {
    let action = state.withLock { state in
      state.isCancelled = true
      return state.cancel.take()
    }
    action?()
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// False if it was cancelled before.
  func start(_ serial: UInt32, _ core: ConnectionCore) -> Bool {
    state.withLock { state in
      guard !state.isCancelled else { return false }
      state.cancel = { [weak core] in
        guard let core else { return }
        core.queue.async { core.cancel(serial) }
      }
      return true
    }
  }
}

/// Signals come as long as this object lives and ``cancel()`` was not called.
public final class DBusSubscription: Sendable {
  /// What the connection knows of the subscription.
  final class Token: Sendable {
    private let state = PosixMutex(false)
    var isCancelled: Bool { state.withLock { $0 } }
    /// False if it was done before.
    func cancel() -> Bool {
      state.withLock { state in
        defer { state = true }
        return !state
      }
    }
  }

  let token = Token()
  private let onCancel: @Sendable (Token) -> Void

  init(_ core: ConnectionCore) {
    onCancel = { [weak core] token in
      guard let core else { return }
      core.queue.async { core.unsubscribe(token) }
    }
  }

  deinit { cancel() }

  /// Ends the deliveries: no handler begins after this was called on the connection's queue. Idempotent, from any thread.
  public func cancel() {
    if token.cancel() { onCancel(token) }
  }
}
