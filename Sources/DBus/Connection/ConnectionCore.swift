internal import Dispatch

/// What a connection does on its queue: sends, sorts what comes, ends.
///
/// Lifetime: the public ``DBusConnection`` owns it; everything else (timers, subscriptions, exports, invocations) knows it weakly.
// Every member but the constants is used on `queue` only: whoever is elsewhere hops there first.
final class ConnectionCore: @unchecked Sendable {
  typealias Completion = @Sendable (Result<DBusMessage, DBusError>) -> Void

  let queue: DispatchQueue
  let clock: any DBusClock
  let limits: DBusLimits

  private var link: BusLink?
  /// Why nothing can be sent any more.
  private(set) var end: DBusError?
  private(set) var uniqueName = ""
  private var pending = PendingCalls<Completion>()
  private var timer: (deadline: Duration, handle: DBusTimer)?
  private var endHandlers: [@Sendable (DBusError) -> Void] = []
  private var closers: [@Sendable () -> Void] = []
  var router = SignalRouter()
  var objects = ObjectTree()
  var unansweredCalls = 0

  init(queue: DispatchQueue, clock: any DBusClock, limits: DBusLimits) {
    self.queue = queue
    self.clock = clock
    self.limits = limits
  }

  // MARK: Begin

  /// Connects, and introduces itself to the bus, which answers with the unique name.
  ///
  /// Source: D-Bus Specification, "org.freedesktop.DBus.Hello".
  func start(
    _ address: DBusAddress, timeLimit: Duration?, token: DBusCall, _ completion: @escaping Completion
  ) {
    do {
      let link = try BusLink(address: address.text(), queue: queue)
      link.onMessage = { [weak self] message, failure in self?.receive(message, failure) }
      link.onDisconnect = { [weak self] in self?.finish($0) }
      link.onProgress = { [weak self] in self?.finishClosing() }
      self.link = link
      try link.start()
    } catch {
      finish(error)
      return completion(.failure(error))
    }
    callBus("Hello", [], timeLimit: timeLimit, token: token) { [weak self] result in
      let checked = result.flatMap { reply in Result { () throws(DBusError) in try Self.name(in: reply) } }
      switch checked {
      case .success(let name): self?.uniqueName = name
      case .failure(let error): self?.finish(error)
      }
      completion(checked.flatMap { _ in result })
    }
  }

  private static func name(in reply: DBusMessage) throws(DBusError) -> String {
    let name = try reply.read(String.self)
    guard DBusName.isValid(name, as: .bus), DBusName.isUnique(name) else {
      throw .unexpected("the bus gave “\(name)” as a unique name")
    }
    return name
  }

  // MARK: Sending

  /// Queues a message and returns its serial.
  @discardableResult
  func send(_ message: DBusMessage) throws(DBusError) -> UInt32 {
    if let end { throw end }
    guard let link else { throw .disconnected("the connection was not opened") }
    return try link.send(message, maximumWaiting: limits.outgoingOctets)
  }

  /// Sends what nobody waits for: signals and answers. A bus that does not read ends the connection, so that no loss goes unnoticed.
  func post(_ message: DBusMessage) {
    do { try send(message) } catch {
      if error.kind == .system { finish(error) }
    }
  }

  func call(
    _ message: DBusMessage, timeLimit: Duration?, token: DBusCall, _ completion: @escaping Completion
  ) {
    guard message.kind == .methodCall, message.expectsReply else {
      return completion(.failure(.invalid("only a method call that expects a reply is answered")))
    }
    guard !token.isCancelled else { return completion(.failure(.cancelled)) }
    // The limit counts from before the peer can know of the call, and its timer is set by then.
    let now = clock.now
    let deadline = timeLimit.map { now + $0 }
    if let deadline, end == nil { armTimer(for: deadline, now) }
    let serial: UInt32
    do { serial = try send(message) } catch { return completion(.failure(error)) }
    guard token.start(serial, self) else { return completion(.failure(.cancelled)) }
    pending.insert(serial, destination: message.destination, deadline: deadline, completion)
  }

  /// A call to the bus itself.
  func callBus(
    _ member: String, _ body: [DBusValue], timeLimit: Duration? = DBusConnection.defaultTimeLimit,
    token: DBusCall = DBusCall(), _ completion: @escaping Completion
  ) {
    do {
      let message = try DBusMessage.call(
        destination: DBusWellKnown.bus, path: DBusWellKnown.busPath, interface: DBusWellKnown.bus,
        member: member, body: body)
      call(message, timeLimit: timeLimit, token: token, completion)
    } catch { completion(.failure(error)) }
  }

  func cancel(_ serial: UInt32) { pending.take(serial)?(.failure(.cancelled)) }

  private func armTimer(for deadline: Duration, _ now: Duration) {
    if let timer, timer.deadline <= deadline { return }
    timer?.handle.cancel()
    let handle = clock.schedule(after: max(.zero, deadline - now)) { [weak self] in
      guard let self else { return }
      queue.async { self.expire() }
    }
    timer = (deadline, handle)
  }

  private func expire() {
    timer = nil
    let now = clock.now
    for completion in pending.expire(now) { completion(.failure(.timedOut)) }
    if let deadline = pending.nextDeadline { armTimer(for: deadline, now) }
  }

  // MARK: Receiving

  private func receive(_ message: DBusMessage, _ failure: DBusError?) {
    guard end == nil else { return }
    switch message.kind {
    case .methodReturn, .error:
      guard let serial = message.replySerial, let completion = pending.take(serial, from: message.sender)
      else { return }
      if let failure {
        completion(.failure(failure))
      } else {
        completion(message.kind == .error ? .failure(message.asError) : .success(message))
      }
    case .signal:
      // Without its body a signal is none: what could not be read says so where it can, and a signal has nobody to say it to.
      if failure == nil { deliver(message) }
    case .methodCall:
      answer(message, failure)
    }
  }

  // MARK: End

  func whenEnded(_ handler: @escaping @Sendable (DBusError) -> Void) {
    if let end { handler(end) } else { endHandlers.append(handler) }
  }

  /// Ends the connection at once; whoever waits for something gets the error.
  func finish(_ error: DBusError) {
    guard end == nil else { return }
    stop(error)
    release()
  }

  /// Ends the connection after what was sent has left, within a time limit.
  func close(_ completion: @escaping @Sendable () -> Void) {
    closers.append(completion)
    stop(.disconnected("the connection was closed"))
    guard let link, link.isSending else { return release() }
    guard timer == nil else { return }
    // The timer keeps this object alive until the end.
    let handle = clock.schedule(after: limits.closing) { self.queue.async { self.release() } }
    timer = (.zero, handle)
  }

  private func finishClosing() {
    if end != nil, link?.isSending == false { release() }
  }

  private func stop(_ error: DBusError) {
    guard end == nil else { return }
    end = error
    timer?.handle.cancel()
    timer = nil
    objects = ObjectTree()
    for waiter in router.takeWaiters() { waiter(.failure(error)) }
    for completion in pending.removeAll() { completion(.failure(error)) }
    for subscription in router.removeAll() { subscription.onEnd(error) }
    let handlers = endHandlers
    endHandlers = []
    for handler in handlers { handler(error) }
  }

  private func release() {
    timer?.handle.cancel()
    timer = nil
    link?.end()
    link = nil
    let closed = closers
    closers = []
    for completion in closed { completion() }
  }
}

extension DBusError {
  static let cancelled = DBusError(
    kind: .cancelled, name: DBusErrorName.failed, message: "the caller no longer waits for the reply")

  static let timedOut = DBusError(
    kind: .timedOut, name: DBusErrorName.noReply, message: "no reply came within the time limit")
}
