internal import DBus
internal import Dispatch
internal import Glibc
internal import Locking
internal import Radio
internal import Readiness
internal import SystemCalls

/// Accepts credit-based channels on a PSM of an adapter, which it chooses. Releasing it closes it, and the channels with it.
final class L2CAPListener: Sendable {
  /// PSMs that are free for whoever wants one (Core Vol 3 Part A 4.22).
  static let dynamicPSMs: ClosedRange<PSM> = 0x80...0xFF
  /// More open channels are not accepted; the kernel refuses them for want of resources.
  static let mostChannels = 32
  /// So many are accepted at a time.
  private static let burst = 16
  /// When accepting is tried again after it failed for want of descriptors or memory.
  private static let pause = Duration.seconds(1)

  private struct Member {
    weak var core: L2CAPChannelCore?
  }

  private struct State {
    var source: ReadinessSource?
    var timer: ScheduledWork?
    var channels: [UInt64: Member] = [:]
    var nextID: UInt64 = 0
    /// Nil once closed.
    var socket: UnixDescriptor?
  }

  /// The PSM that peers connect to.
  let psm: PSM
  private let sockets: any L2CAPSockets
  private let monitor: ReadinessMonitor
  private let clock: any RadioClock
  private let identify: @Sendable (DeviceAddress) -> PeerID
  private let onAccept: @Sendable (DeviceAddress, L2CAPChannel) -> Void
  private let state = PosixMutex(State())

  /// Takes the first free PSM of the adapter.
  ///
  /// - Parameters:
  ///   - adapter: the address of the adapter.
  ///   - requiresEncryption: whether peers on links that are not encrypted are refused.
  ///   - identify: what channels call the device of an address.
  ///   - onAccept: takes the channels, on a queue of the listener.
  /// - Throws: ``RadioError/Code/outOfSpace`` where no PSM is free, and what the kernel says.
  init(
    adapter: DeviceAddress, requiresEncryption: Bool, clock: any RadioClock,
    sockets: any L2CAPSockets = KernelL2CAPSockets(),
    identify: @escaping @Sendable (DeviceAddress) -> PeerID = { $0.peer },
    onAccept: @escaping @Sendable (DeviceAddress, L2CAPChannel) -> Void
  ) throws(RadioError) {
    let (socket, psm) = try Self.listen(adapter, requiresEncryption ? .medium : .low, sockets)
    guard let monitor = ReadinessMonitor(queue: DispatchQueue(label: "BlueZRadio.channels")) else {
      throw RadioError(publishing: SystemError("epoll_create1(2)", EMFILE))
    }
    self.psm = psm
    self.monitor = monitor
    self.sockets = sockets
    self.clock = clock
    self.identify = identify
    self.onAccept = onAccept
    let isWatched = state.withLock { state in
      state.socket = socket
      state.source = .reading(socket.raw, monitor) { [weak self] in self?.acceptWaiting() }
      state.source?.setEnabled(true)
      return state.source != nil
    }
    if !isWatched { throw RadioError(publishing: SystemError("dup(2)", EMFILE)) }
  }

  deinit { close() }

  private static func listen(
    _ adapter: DeviceAddress, _ security: L2CAPSecurity, _ sockets: any L2CAPSockets
  ) throws(RadioError) -> (UnixDescriptor, PSM) {
    for psm in dynamicPSMs {
      do throws(SystemError) {
        return (try sockets.listen(on: psm, of: adapter, security), psm)
      } catch {
        guard error.number == EADDRINUSE else { throw RadioError(publishing: error) }
      }
    }
    throw RadioError(.outOfSpace, "all PSMs from 0x80 to 0xFF of \(adapter) are taken")
  }

  /// Accepts no more, and closes the channels that were accepted; idempotent.
  func close() {
    let cores = state.withLock { state -> [L2CAPChannelCore] in
      state.source?.cancel()
      state.timer?.cancel()
      // Its cancel handler keeps the descriptor a little longer: peers are refused from now on all the same.
      if let socket = state.socket { PacketSocket.shutDown(socket) }
      state.socket = nil
      state.source = nil
      state.timer = nil
      defer { state.channels = [:] }
      return state.channels.values.compactMap(\.core)
    }
    for core in cores { core.close() }
  }

  private func acceptWaiting() {
    for _ in 0..<Self.burst {
      guard let (socket, id) = state.withLock({ Self.reserve(&$0) }) else { return }
      do throws(SystemError) {
        guard let (accepted, address) = try sockets.accept(socket) else { return }
        // A peer that has gone again is none.
        guard let limits = try? sockets.limits(of: accepted) else { continue }
        add(accepted, limits, of: address, id)
      } catch {
        return pause()
      }
    }
  }

  /// The socket to accept from and a number for the next channel; nil where there may be none.
  private static func reserve(_ state: inout State) -> (UnixDescriptor, UInt64)? {
    guard let socket = state.socket else { return nil }
    guard state.channels.count < mostChannels else {
      state.source?.setEnabled(false)
      return nil
    }
    state.nextID += 1
    return (socket, state.nextID)
  }

  private func add(
    _ accepted: UnixDescriptor, _ limits: SDUStream.Limits, of address: DeviceAddress, _ id: UInt64
  ) {
    let core = L2CAPChannelCore(accepted, limits, monitor: monitor, clock: clock) { [weak self] in
      self?.ended(id)
    }
    let isOpen = state.withLock { state in
      guard state.socket != nil else { return false }
      state.channels[id] = Member(core: core)
      return true
    }
    core.start()
    let channel = L2CAPChannel(psm: psm, peer: identify(address), core: core)
    if isOpen { onAccept(address, channel) }
  }

  /// A channel is no more, and another may come.
  private func ended(_ id: UInt64) {
    state.withLock { state in
      state.channels[id] = nil
      if state.timer == nil { state.source?.setEnabled(true) }
    }
  }

  /// Leaves peers waiting for a while.
  private func pause() {
    state.withLock { state in
      guard state.timer == nil, state.socket != nil else { return }
      state.source?.setEnabled(false)
      state.timer = clock.schedule(after: Self.pause) { [weak self] in self?.goOn() }
    }
  }

  private func goOn() {
    state.withLock { state in
      state.timer = nil
      if state.channels.count < Self.mostChannels { state.source?.setEnabled(true) }
    }
  }
}
