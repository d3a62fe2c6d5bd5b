internal import DBus
internal import Dispatch
internal import Glibc
internal import Locking
internal import Radio
internal import Readiness
internal import SystemCalls

/// Opens credit-based channels to peers.
final class L2CAPConnector: Sendable {
  /// A peer that does not answer a channel request in this time does not open it (RTX, Core Vol 3 Part A 6.2.1).
  static let timeLimit = Duration.seconds(30)

  private let clock: any RadioClock
  private let timeLimit: Duration
  private let sockets: any L2CAPSockets
  private let queue = DispatchQueue(label: "BlueZRadio.channels.opening")
  /// Made for the first channel, and again where it could not be.
  private let monitor = PosixMutex<ReadinessMonitor?>(nil)

  init(
    clock: any RadioClock, timeLimit: Duration = L2CAPConnector.timeLimit,
    sockets: any L2CAPSockets = KernelL2CAPSockets()
  ) {
    self.clock = clock
    self.timeLimit = timeLimit
    self.sockets = sockets
  }

  /// Asks a device that is linked for a channel.
  ///
  /// - Parameters:
  ///   - device: where to; without a link to it the kernel would make one, so see to it before.
  ///   - adapter: the address of the adapter that has the link.
  ///   - security: pairing or encryption is started where the link has less.
  ///   - peer: what the channel calls the device.
  ///   - completion: called once, on a queue of the connector. ``RadioError/Code/cancelled`` after ``L2CAPAttempt/cancel()``.
  /// - Returns: a handle to cancel it by; releasing that does nothing.
  @discardableResult
  func connect(
    to device: DeviceAddress, from adapter: DeviceAddress, psm: PSM, security: L2CAPSecurity = .low,
    peer: PeerID, completion: @escaping @Sendable (Result<L2CAPChannel, RadioError>) -> Void
  ) -> L2CAPAttempt {
    let request = L2CAPRequest(device: device, adapter: adapter, psm: psm, security: security)
    let monitor = monitor.withLock { monitor in
      if monitor == nil { monitor = ReadinessMonitor(queue: DispatchQueue(label: "BlueZRadio.channels")) }
      return monitor
    }
    let attempt = L2CAPAttempt(
      request, peer: peer, queue: monitor?.queue ?? queue, monitor: monitor, clock: clock, sockets: sockets,
      completion: completion)
    attempt.begin(timeLimit)
    return attempt
  }
}

/// A channel that is being opened.
final class L2CAPAttempt: Sendable {
  private struct State {
    var socket: UnixDescriptor?
    var source: ReadinessSource?
    var timer: ScheduledWork?
    var isOver = false
  }

  private let request: L2CAPRequest
  private let peer: PeerID
  private let queue: DispatchQueue
  private let monitor: ReadinessMonitor?
  private let clock: any RadioClock
  private let sockets: any L2CAPSockets
  private let completion: @Sendable (Result<L2CAPChannel, RadioError>) -> Void
  private let state = PosixMutex(State())

  fileprivate init(
    _ request: L2CAPRequest, peer: PeerID, queue: DispatchQueue, monitor: ReadinessMonitor?,
    clock: any RadioClock,
    sockets: any L2CAPSockets, completion: @escaping @Sendable (Result<L2CAPChannel, RadioError>) -> Void
  ) {
    self.request = request
    self.peer = peer
    self.queue = queue
    self.monitor = monitor
    self.clock = clock
    self.sockets = sockets
    self.completion = completion
  }

  /// Gives up; idempotent.
  func cancel() {
    queue.async {
      self.finish(.failure(RadioError(.cancelled, "opening PSM \(self.request.psm) was cancelled")))
    }
  }

  fileprivate func begin(_ timeLimit: Duration) { queue.async { self.start(timeLimit) } }

  /// On the queue, as everything below.
  private func start(_ timeLimit: Duration) {
    guard !state.withLock(\.isOver) else { return }
    guard (0x0001...0x00FF).contains(request.psm) else {
      return finish(
        .failure(RadioError(.invalidParameters, "PSM \(request.psm) is not in 1...255")))
    }
    do throws(SystemError) {
      guard let monitor else { throw SystemError("epoll_create1(2)", EMFILE) }
      let socket = try sockets.connect(request)
      let timer = clock.schedule(after: timeLimit) { [weak self] in
        guard let self else { return }
        queue.async { self.timedOut(timeLimit) }
      }
      let isWatched = state.withLock { state in
        state.socket = socket
        state.timer = timer
        state.source = .writing(socket.raw, monitor) { self.settled() }
        state.source?.setEnabled(true)
        return state.source != nil
      }
      if !isWatched { throw SystemError("dup(2)", EMFILE) }
    } catch {
      finish(.failure(RadioError(opening: request, error)))
    }
  }

  private func timedOut(_ timeLimit: Duration) {
    finish(
      .failure(
        RadioError(
          .timeout,
          "\(request.device) has not opened PSM \(request.psm) in \(timeLimit); it may be waiting to be paired"
        )))
  }

  /// The socket is writable or has an error.
  private func settled() {
    guard let monitor, let socket = state.withLock(\.socket) else { return }
    let number = PacketSocket.takeError(of: socket)
    guard number == 0 else {
      let error = SystemError("connect(2)", number)
      let demanded = sockets.security(of: socket)
      return finish(.failure(RadioError(opening: request, error, demanded: demanded)))
    }
    do throws(SystemError) {
      let limits = try sockets.limits(of: socket)
      let core = L2CAPChannelCore(socket, limits, monitor: monitor, clock: clock)
      core.start()
      finish(.success(L2CAPChannel(psm: request.psm, peer: peer, core: core)))
    } catch {
      finish(.failure(RadioError(opening: request, error)))
    }
  }

  /// Answers, if that was not done.
  private func finish(_ result: Result<L2CAPChannel, RadioError>) {
    let isFirst = state.withLock { state in
      guard !state.isOver else { return false }
      state.isOver = true
      // The sources' handler holds on to the attempt until then.
      state.source?.cancel()
      state.timer?.cancel()
      state.source = nil
      state.timer = nil
      state.socket = nil
      return true
    }
    if isFirst { completion(result) }
  }
}
