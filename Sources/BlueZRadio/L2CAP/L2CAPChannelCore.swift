internal import DBus
internal import Dispatch
internal import Foundation
internal import Locking
internal import Radio
internal import Readiness
internal import SystemCalls

/// The shell of an ``SDUStream``: a connected socket of type SOCK_SEQPACKET and its readiness.
///
/// Any thread may call. What is done to the socket is done under one lock, on a queue but for reading what has outlived the connection. It lives on by
/// itself while a closed channel is still sending, for a bounded time.
final class L2CAPChannelCore: Sendable {
  /// How long a peer may take for what this side waits for.
  struct Patience: Sendable {
    /// After closing: as long as it takes nothing of what was written. While a channel is open a peer may take its time.
    var stall = Duration.seconds(30)
    /// Until it answers that it disconnects.
    var answer = Duration.seconds(5)
  }

  private struct State {
    var stream: SDUStream
    /// Nil once nothing is left to be had from it.
    var socket: UnixDescriptor?
    var buffer: [UInt8] = []
    var sink: (@Sendable (ChannelEvent) -> Void)?
    var reading: ReadinessSource?
    var writing: ReadinessSource?
    var isFlushScheduled = false
    /// The measure of the kernel's buffer before anything was sent.
    let idleFill: Int32?
    /// The size of that buffer, nil where it is not known; and whether it is made smaller at the moment.
    let sendBuffer: Int32?
    var isNarrow = false
    var failure: SystemError?
    var patience: ScheduledWork?
    var onEnd: (@Sendable () -> Void)?
    /// The core itself, while it closes: nobody else may have it.
    var keeper: L2CAPChannelCore?
    /// To be released, or called and released, once the lock is open: they may own anything.
    var oldSinks: [@Sendable (ChannelEvent) -> Void] = []
    var dueEnd: (@Sendable () -> Void)?
    var oldKeeper: L2CAPChannelCore?
  }

  /// So many SDUs are taken at a time, so that a busy channel leaves turns to the others.
  private static let burst = 16
  /// A packet without octets is an empty SDU, or the end; after so many in a row it is the end.
  private static let mostEmpty = 8

  /// The size of the kernel's buffer while this side waits for room.
  ///
  /// The kernel wakes who waits for room at each frame that has left, as long as what is left takes less than half of the buffer: at every frame of an SDU
  /// of a hundred, though the socket takes the next one only after the last of them. Of so small a buffer, few of them are left by then.
  private static let narrowBuffer: Int32 = 16 * 1024

  private let monitor: ReadinessMonitor
  private var queue: DispatchQueue { monitor.queue }
  private let clock: any RadioClock
  private let limits: Patience
  private let state: PosixMutex<State>

  /// Takes a connected socket; ``start()`` begins to listen to it. `onEnd` is called once, on any thread, when the channel has ended.
  init(
    _ socket: UnixDescriptor, _ streamLimits: SDUStream.Limits, monitor: ReadinessMonitor,
    clock: any RadioClock,
    patience: Patience = Patience(), onEnd: (@Sendable () -> Void)? = nil
  ) {
    self.monitor = monitor
    self.clock = clock
    limits = patience
    state = PosixMutex(
      State(
        stream: SDUStream(streamLimits), socket: socket, idleFill: PacketSocket.fill(of: socket),
        sendBuffer: PacketSocket.sendBuffer(of: socket), onEnd: onEnd))
  }

  deinit {
    state.withLock { state in
      state.reading?.cancel()
      state.writing?.cancel()
    }
  }

  /// Begins to listen to the socket; once.
  func start() {
    withState { state in
      guard let socket = state.socket, state.stream.phase != .ended else { return }
      state.writing = .writing(socket.raw, monitor) { [weak self] in self?.socketIsWritable() }
      state.reading = .reading(socket.raw, monitor) { [weak self] in self?.socketIsReadable() }
      guard state.writing != nil, state.reading != nil else {
        PacketSocket.shutDown(socket)
        return finish(&state, RadioError(.noResources, "no descriptor is left for a channel"))
      }
      state.reading?.setEnabled(true)
    }
  }

  /// Does something under the lock, and tells what has come of it.
  private func withState<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    let (result, end, old, keeper) = state.withLock { state in
      let result = body(&state)
      if let sink = state.sink { for event in state.stream.takeEvents() { sink(event) } }
      let (end, old, keeper) = (state.dueEnd, state.oldSinks, state.oldKeeper)
      state.dueEnd = nil
      state.oldSinks = []
      state.oldKeeper = nil
      return (result, end, old, keeper)
    }
    end?()
    withExtendedLifetime((old, keeper)) {}
    return result
  }

  // MARK: The channel's side

  func setSink(_ sink: (@Sendable (ChannelEvent) -> Void)?) {
    withState { state in
      if let old = state.sink { state.oldSinks.append(old) }
      state.sink = sink
      if let sink { for event in state.stream.takeEvents(again: true) { sink(event) } }
    }
  }

  var hasBytes: Bool { withState { $0.stream.hasBytes } }

  var hasSpace: Bool { withState { $0.stream.hasSpace } }

  func write(_ bytes: Data) -> Int {
    withState { state in
      let taken = state.stream.write(bytes)
      if state.stream.nextLength != nil { scheduleFlush(&state) }
      return taken
    }
  }

  func read(upTo count: Int) -> Data {
    withState { state in
      var bytes = state.stream.read(upTo: count)
      while state.stream.phase == .ended, state.socket != nil {
        takeRest(&state)
        guard bytes.count < count, state.stream.hasBytes else { break }
        bytes += state.stream.read(upTo: count - bytes.count)
      }
      if state.stream.canReceive { state.reading?.setEnabled(true) }
      return bytes
    }
  }

  /// Closes once what was written has been sent.
  func close() {
    withState { state in
      guard state.stream.phase == .open else { return }
      state.stream.close()
      state.keeper = self
      state.reading?.setEnabled(true)
      watchOver(&state, limits.stall)
      scheduleFlush(&state)
    }
  }

  /// Closes, and tells nobody any more.
  func abandon() {
    setSink(nil)
    close()
  }

  /// The link has gone, and with it the channel; what has arrived can be read.
  func end(_ reason: RadioError?) {
    withState { state in
      guard let socket = state.socket, state.stream.phase != .ended else { return }
      _ = takeSDUs(&state, socket, most: .max)
      PacketSocket.shutDown(socket)
      finish(&state, reason)
    }
  }

  // MARK: Receiving

  private enum Stop {
    /// Nothing is there now.
    case nothing
    /// There may be more, and there is no room for it.
    case full
    case more
  }

  private func takeSDUs(_ state: inout State, _ socket: UnixDescriptor, most: Int) -> Stop {
    if state.buffer.isEmpty { state.buffer = [UInt8](repeating: 0, count: state.stream.receiveMTU) }
    var empty = 0
    for _ in 0..<most {
      guard state.stream.canReceive else { return .full }
      switch PacketSocket.receive(into: &state.buffer, from: socket) {
      case .packet(0):
        empty += 1
        if empty == Self.mostEmpty { return .nothing }
      case .packet(let count):
        empty = 0
        state.stream.received(state.buffer[..<count])
      case .nothing: return .nothing
      case .failed(let error):
        // The kernel tells why a connection has ended before it gives what came before; and it tells only once.
        if state.failure != nil { return .nothing }
        state.failure = error
      }
    }
    return .more
  }

  /// Takes what a connection has left behind, as far as there is room.
  private func takeRest(_ state: inout State) {
    guard let socket = state.socket, takeSDUs(&state, socket, most: .max) == .nothing else { return }
    state.socket = nil
  }

  private func socketIsReadable() {
    withState { state in
      guard let socket = state.socket, state.stream.phase != .ended else { return }
      let hangUp = PacketSocket.hangUp(of: socket)
      // After a hang-up no event comes any more.
      let stop = takeSDUs(&state, socket, most: hangUp == nil ? Self.burst : .max)
      if hangUp != nil || state.failure != nil {
        settle(&state, socket, hangUp)
      } else if stop == .full {
        // Who does not read is told of the end all the same.
        state.reading?.watch(.hangUp)
      }
    }
  }

  // MARK: Sending

  private func scheduleFlush(_ state: inout State) {
    guard !state.isFlushScheduled else { return }
    state.isFlushScheduled = true
    queue.async { self.withState { self.flush(&$0) } }
  }

  private func setNarrow(_ isNarrow: Bool, _ state: inout State) {
    guard let socket = state.socket, let size = state.sendBuffer, state.isNarrow != isNarrow else { return }
    state.isNarrow = isNarrow
    PacketSocket.setSendBuffer(of: socket, to: isNarrow ? min(Self.narrowBuffer, size) : size)
  }

  private func socketIsWritable() {
    withState { state in
      setNarrow(false, &state)
      state.stream.unblock(now: clock.now)
      state.writing?.setEnabled(false)
      // A socket is writable only once it has sent every frame of the SDUs that it took: there are credits left.
      if state.stream.phase == .draining, state.stream.hasSentAll {
        disconnect(&state)
      } else {
        flush(&state)
      }
    }
  }

  private func flush(_ state: inout State) {
    state.isFlushScheduled = false
    guard let socket = state.socket else { return }
    while let length = state.stream.nextLength {
      switch PacketSocket.send(state.stream.nextSDU(length), to: socket) {
      case .sent: state.stream.sent(length)
      case .blocked:
        if state.stream.refused(now: clock.now) {
          setNarrow(true, &state)
          state.writing?.setEnabled(true)
        } else {
          PacketSocket.shutDown(socket)
          finish(&state, RadioError(.noResources, "the kernel takes no SDU, however short"))
        }
        return
      case .failed(let error):
        if state.failure == nil { state.failure = error }
        return settle(&state, socket, PacketSocket.hangUp(of: socket))
      }
    }
    guard state.stream.phase == .draining, state.stream.hasSentAll else { return }
    // The frames of the last SDUs may still wait for credits, and would be lost.
    if isIdle(state, socket) { disconnect(&state) } else { state.writing?.setEnabled(true) }
  }

  /// Whether everything that was sent has left the kernel.
  private func isIdle(_ state: borrowing State, _ socket: UnixDescriptor) -> Bool {
    guard let idle = state.idleFill else { return false }
    return PacketSocket.fill(of: socket) == idle
  }

  // MARK: Ends

  /// Asks the peer to disconnect, behind everything that was sent.
  private func disconnect(_ state: inout State) {
    guard let socket = state.socket else { return }
    PacketSocket.shutDownSending(socket)
    state.stream.disconnecting()
    watchOver(&state, limits.answer)
  }

  private func watchOver(_ state: inout State, _ limit: Duration) {
    state.patience?.cancel()
    let sentCount = state.stream.sentCount
    let fill = state.socket.flatMap(PacketSocket.fill)
    state.patience = clock.schedule(after: limit) { [weak self] in
      guard let self else { return }
      queue.async { self.checkStall(sentCount, fill) }
    }
  }

  private func checkStall(_ sentCount: Int, _ fill: Int32?) {
    withState { state in
      guard let socket = state.socket else { return }
      switch state.stream.phase {
      case .open, .ended: break
      case .draining where state.stream.sentCount != sentCount || PacketSocket.fill(of: socket) != fill:
        watchOver(&state, limits.stall)
      case .draining where state.stream.hasSentAll && isIdle(state, socket): disconnect(&state)
      case .draining:
        PacketSocket.shutDown(socket)
        let reason = RadioError(
          .timeout, "the peer took nothing for \(limits.stall) of what was written before closing")
        finish(&state, reason)
      case .disconnecting: finish(&state, nil)
      }
    }
  }

  /// The connection is over, or is found to be.
  private func settle(_ state: inout State, _ socket: UnixDescriptor, _ hangUp: PacketSocket.HangUp?) {
    let hangUp = hangUp ?? PacketSocket.hangUp(of: socket)
    _ = takeSDUs(&state, socket, most: .max)
    switch (state.stream.phase, hangUp) {
    case (.disconnecting, _), (_, .inOrder): finish(&state, nil)
    case (_, .broken), (_, nil):
      let number = PacketSocket.takeError(of: socket)
      finish(
        &state,
        RadioError(broken: state.failure ?? (number == 0 ? nil : SystemError("SO_ERROR", number))))
    }
  }

  private func finish(_ state: inout State, _ reason: RadioError?) {
    guard state.stream.phase != .ended else { return }
    state.stream.finish(reason)
    state.reading?.cancel()
    state.writing?.cancel()
    state.patience?.cancel()
    state.reading = nil
    state.writing = nil
    state.patience = nil
    if state.stream.dropsIncoming { state.socket = nil } else { takeRest(&state) }
    state.dueEnd = state.onEnd
    state.onEnd = nil
    state.oldKeeper = state.keeper
    state.keeper = nil
  }
}
