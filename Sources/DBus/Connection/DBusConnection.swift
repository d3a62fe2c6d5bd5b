public import Dispatch
internal import Locking

/// A private connection to a bus.
///
/// Everything happens on one serial queue: what arrives, completions, handlers of signals, methods and properties. All members can be used
/// from any thread and return at once or suspend; what one thread sends goes out in that order. The connection is closed
/// by ``close()`` or with its last reference, and its end never ends the process.
///
///     let bus = try await DBusConnection.open(.system)
///     let reply = try await bus.call(
///       .call(destination: "org.bluez", path: "/", interface: DBusWellKnown.objectManager, member: "GetManagedObjects"))
///
/// Source: D-Bus Specification, "Message Bus Specification".
public final class DBusConnection: Sendable {
  /// What a call waits without a limit of its own: as long as the reference implementation.
  public static let defaultTimeLimit = Duration.seconds(25)

  let core: ConnectionCore

  /// The name that the bus gave to this connection, such as `:1.42`.
  public let uniqueName: String

  /// The serial queue on which everything of this connection happens.
  public var queue: DispatchQueue { core.queue }

  /// Connects and waits for the bus to answer.
  ///
  /// - Parameters:
  ///   - queue: a serial queue, or nil for one of its own.
  ///   - clock: what measures time limits.
  ///   - timeLimit: for the bus to answer; nil waits for ever.
  /// - Throws: ``DBusError`` where there is no bus, it refuses, or does not speak D-Bus; `CancellationError`.
  public static func open(
    _ address: DBusAddress, queue: DispatchQueue? = nil, clock: any DBusClock = SystemDBusClock(),
    limits: DBusLimits = DBusLimits(), timeLimit: Duration? = defaultTimeLimit
  ) async throws -> DBusConnection {
    let queue = queue ?? DispatchQueue(label: "DBus.connection")
    let core = ConnectionCore(queue: queue, clock: clock, limits: limits)
    do {
      let reply = try await waiting { token, completion in
        core.queue.async { core.start(address, timeLimit: timeLimit, token: token, completion) }
      }
      return DBusConnection(core, try reply.read(String.self))
    } catch {
      core.queue.async { core.close {} }
      throw error
    }
  }

  private init(_ core: ConnectionCore, _ uniqueName: String) {
    self.core = core
    self.uniqueName = uniqueName
  }

  deinit {
    let core = core
    core.queue.async { core.close {} }
  }

  /// Waits until what was sent has left, two seconds at most, and closes. Whoever waits for something on this connection gets an
  /// error of kind ``DBusError/Kind/disconnected`` first. Idempotent.
  public func close() async {
    await withCheckedContinuation { continuation in
      core.queue.async { [core] in core.close { continuation.resume() } }
    }
  }

  /// Calls `handler` once on the queue when the connection has ended, whoever ended it; at once where that has happened.
  public func whenEnded(_ handler: @escaping @Sendable (DBusError) -> Void) {
    core.queue.async { [core] in core.whenEnded(handler) }
  }

  // MARK: Calls

  /// Calls a method and waits for the reply.
  ///
  /// - Parameter timeLimit: nil waits as long as the connection lives.
  /// - Throws: ``DBusError`` with kind ``DBusError/Kind/reply`` for a peer's error, ``DBusError/Kind/timedOut``,
  ///   ``DBusError/Kind/disconnected`` and others; `CancellationError` where the task was cancelled.
  public func call(
    _ message: DBusMessage, timeLimit: Duration? = defaultTimeLimit
  ) async throws -> DBusMessage {
    try await Self.waiting { [core] token, completion in
      core.queue.async { core.call(message, timeLimit: timeLimit, token: token, completion) }
    }
  }

  /// Calls a method; the completion runs once, on the queue.
  @discardableResult
  public func call(
    _ message: DBusMessage, timeLimit: Duration? = defaultTimeLimit,
    completion: @escaping @Sendable (Result<DBusMessage, DBusError>) -> Void
  ) -> DBusCall {
    let token = DBusCall()
    core.queue.async { [core] in core.call(message, timeLimit: timeLimit, token: token, completion) }
    return token
  }

  /// Sends a signal, or a call whose reply nobody wants, which says so to the peer.
  ///
  /// Returns when the message is queued; the bus has not read it then.
  public func send(_ message: DBusMessage) async throws(DBusError) {
    let result = await withCheckedContinuation { continuation in
      send(message) { continuation.resume(returning: $0) }
    }
    try result.get()
  }

  /// Sends as ``send(_:)``; the completion runs once, on the queue.
  public func send(
    _ message: DBusMessage, completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
  ) {
    var message = message
    message.expectsReply = false
    core.queue.async { [core, message] in
      completion(Result { () throws(DBusError) in _ = try core.send(message) })
    }
  }

  /// Suspends until a completion was called, which a cancelled task hastens.
  private static func waiting(
    _ start: (DBusCall, @escaping ConnectionCore.Completion) -> Void
  ) async throws -> DBusMessage {
    let token = DBusCall()
    // The reply goes through a lock: where it comes before the task waits, the thread sanitizer does not see the runtime hand it over.
    let reply = PosixMutex<Result<DBusMessage, DBusError>?>(nil)
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        start(token) { result in
          reply.withLock { $0 = result }
          continuation.resume()
        }
      }
    } onCancel: {
      token.cancel()
    }
    guard let result = reply.withLock({ $0 }) else { throw CancellationError() }
    if case .failure(let error) = result, error.kind == .cancelled { throw CancellationError() }
    return try result.get()
  }
}
