internal import Dispatch
internal import Locking

extension DBusConnection {
  /// Signals that a stream holds for a slow reader.
  public static let defaultSignalBuffer = 65_536

  /// Subscribes to signals: `handler` runs on the queue for each, in the order in which they came.
  ///
  /// Returns when the bus has taken the rule; keep what is returned. Signals that follow on the rule may come before it returns.
  /// - Parameter onEnd: called on the queue where the connection ends before the subscription.
  public func subscribe(
    to rule: MatchRule, onEnd: @escaping @Sendable (DBusError) -> Void = { _ in },
    _ handler: @escaping @Sendable (DBusMessage) -> Void
  ) async throws(DBusError) -> DBusSubscription {
    let subscription = DBusSubscription(core)
    let result = await withCheckedContinuation { continuation in
      start(subscription, rule, onEnd, handler) { continuation.resume(returning: $0) }
    }
    try result.get()
    return subscription
  }

  /// Subscribes as ``subscribe(to:onEnd:_:)``, without suspending; the completion runs once, on the queue, when the bus has answered.
  public func subscribe(
    to rule: MatchRule, onEnd: @escaping @Sendable (DBusError) -> Void = { _ in },
    handler: @escaping @Sendable (DBusMessage) -> Void,
    completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
  ) -> DBusSubscription {
    let subscription = DBusSubscription(core)
    start(subscription, rule, onEnd, handler, completion)
    return subscription
  }

  private func start(
    _ subscription: DBusSubscription, _ rule: MatchRule, _ onEnd: @escaping @Sendable (DBusError) -> Void,
    _ handler: @escaping @Sendable (DBusMessage) -> Void,
    _ completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
  ) {
    let entry = SignalRouter.Subscription(
      token: subscription.token, rule: rule, handler: handler, onEnd: onEnd)
    core.queue.async { [core] in core.subscribe(entry, completion) }
  }

  /// Signals as a stream, which ends with the error that ended the connection.
  ///
  /// A reader that lets more than `buffer` signals wait gets those, and then an error with the name
  /// ``DBusErrorName/limitsExceeded``: none is lost in silence.
  public func signals(
    _ rule: MatchRule, buffer: Int = defaultSignalBuffer
  ) async throws(DBusError) -> AsyncThrowingStream<DBusMessage, any Error> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(
      of: DBusMessage.self, bufferingPolicy: .bufferingOldest(max(1, buffer)))
    let subscription = try await subscribe(to: rule, onEnd: { continuation.finish(throwing: $0) }) {
      message in
      if case .dropped = continuation.yield(message) { continuation.finish(throwing: DBusError.overflow) }
    }
    continuation.onTermination = { _ in subscription.cancel() }
    return stream
  }

  /// Follows who owns a name, well-known or unique: `handler` runs on the queue with the unique name of the owner now, and again at each
  /// change; nil is nobody. This is how a peer's end is noticed.
  ///
  /// Source: D-Bus Specification, "org.freedesktop.DBus.NameOwnerChanged".
  public func followOwner(
    of name: String, onEnd: @escaping @Sendable (DBusError) -> Void = { _ in },
    _ handler: @escaping @Sendable (String?) -> Void
  ) async throws(DBusError) -> DBusSubscription {
    let subscription = DBusSubscription(core)
    let result = await withCheckedContinuation { continuation in
      startFollowing(subscription, name, onEnd, handler) { continuation.resume(returning: $0) }
    }
    try result.get()
    return subscription
  }

  /// Follows as ``followOwner(of:onEnd:_:)``, without suspending; the completion runs once, on the queue, after the first owner was told.
  public func followOwner(
    of name: String, onEnd: @escaping @Sendable (DBusError) -> Void = { _ in },
    handler: @escaping @Sendable (String?) -> Void,
    completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
  ) -> DBusSubscription {
    let subscription = DBusSubscription(core)
    startFollowing(subscription, name, onEnd, handler, completion)
    return subscription
  }

  private func startFollowing(
    _ subscription: DBusSubscription, _ name: String, _ onEnd: @escaping @Sendable (DBusError) -> Void,
    _ handler: @escaping @Sendable (String?) -> Void,
    _ completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
  ) {
    do { try DBusName.check(name, as: .bus) } catch {
      return core.queue.async { completion(.failure(error)) }
    }
    let token = subscription.token
    let last = LastOwner(handler)
    let follow: @Sendable (DBusMessage) -> Void = { message in
      if let change = NameChange(message) { last.tell(change.owner) }
    }
    start(subscription, NameChange.rule(name), onEnd, follow) { [weak core] result in
      guard case .success = result, let core else { return completion(result) }
      core.askOwner(of: name) { result in
        if case .success(let owner) = result, !token.isCancelled { last.tell(owner) }
        completion(result.map { _ in })
      }
    }
  }

  /// Owners of a name as a stream: the present one first. Only the latest waits for a slow reader.
  public func owners(of name: String) async throws(DBusError) -> AsyncThrowingStream<String?, any Error> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(
      of: String?.self, bufferingPolicy: .bufferingNewest(1))
    let subscription = try await followOwner(of: name, onEnd: { continuation.finish(throwing: $0) }) {
      continuation.yield($0)
    }
    continuation.onTermination = { _ in subscription.cancel() }
    return stream
  }
}

extension DBusError {
  fileprivate static let overflow = DBusError(
    kind: .system, name: DBusErrorName.limitsExceeded, message: "more signals wait than the stream holds")
}

/// Tells changes of an owner, each once. Used on the connection's queue.
private final class LastOwner: Sendable {
  private let state: PosixMutex<String??>
  private let handler: @Sendable (String?) -> Void

  init(_ handler: @escaping @Sendable (String?) -> Void) {
    state = PosixMutex(nil)
    self.handler = handler
  }

  func tell(_ owner: String?) {
    let isNew = state.withLock { last in
      defer { last = .some(owner) }
      return last != .some(owner)
    }
    if isNew { handler(owner) }
  }
}
