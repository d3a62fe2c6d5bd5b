internal import Foundation
internal import Locking
internal import Radio

/// Writes without response over one link, from any thread: what was accepted and is not yet with the daemon, and how much is in flight.
///
/// A value is taken whole or refused; what is taken is sent in its order for each characteristic. Values wait here while the daemon is asked for a
/// descriptor, while its end is full, while a write with response holds the characteristic, and while a request waits that was asked for before
/// them; they count as in flight, so the budget bounds them as well.
final class WriteGate: Sendable {
  /// What the session on the host's queue has to do; each is asked for once until it was begun.
  enum Task: Sendable, Hashable {
    /// Move what waits for a characteristic.
    case pump(AttributeHandle)
    /// Send a request whose reply is evidence.
    case probe(AttributeHandle)
  }

  /// A request's place among the values of a link.
  struct Place: Sendable {
    let gate: WriteGate
    let number: WriteOrder.Place
  }

  private struct Waiting: Sendable {
    let place: WriteOrder.Place
    let value: Data
  }

  private struct Outlet: Sendable {
    var waiting: [Waiting] = []
    var socket: AcquiredSocket?
    /// A write with response is at it.
    var isHeld = false
    /// The daemon gives no descriptor: each value is a call.
    var usesCalls = false
    /// A value is with the daemon in a call.
    var isCalling = false
    var isPumpAsked = false
  }

  private struct State: Sendable {
    var isOpen = true
    var mtu = 23
    var budget = WriteBudget()
    var order = WriteOrder()
    var outlets: [AttributeHandle: Outlet] = [:]
    /// Characteristics that take commands.
    var writable: Set<AttributeHandle> = []
    /// Clients that were told that there is no room.
    var owed: Set<UInt64> = []
    var isProbeAsked = false
  }

  private let state = PosixMutex(State())
  private let ask: @Sendable (Task) -> Void

  /// `ask` hands a task to the host's queue; it may be called with any lock held.
  init(_ ask: @escaping @Sendable (Task) -> Void) { self.ask = ask }

  // MARK: From any thread

  var mtu: Int? { state.withLock { $0.isOpen ? $0.mtu : nil } }

  /// The longest value: bluetoothd 5.66 as a server drops commands of more than 510 octets in silence, and cuts as a client what exceeds 512.
  private static func limit(_ state: State) -> Int { min(state.mtu - 3, 512) }

  func canWrite(_ client: UInt64) -> Bool {
    state.withLock { state in
      guard state.isOpen else { return false }
      if state.budget.hasRoom(for: Self.limit(state)) { return true }
      state.owed.insert(client)
      return false
    }
  }

  func write(_ value: Data, to handle: AttributeHandle, by client: UInt64) -> WriteOutcome {
    var tasks: [Task] = []
    let outcome: WriteOutcome = state.withLock { state in
      guard state.isOpen else { return .notConnected }
      let limit = Self.limit(state)
      guard value.count <= limit else { return .tooLong(limit: limit) }
      // It would be lost on the air, without a word.
      guard state.writable.contains(handle) else { return .invalidHandle }
      guard state.budget.take(value.count) else {
        state.owed.insert(client)
        return .notReady
      }
      let place = state.order.addValue()
      let mayLeave = state.order.mayLeave(place)
      if !mayLeave || !Self.send(value, &state.outlets[handle, default: Outlet()]) {
        state.outlets[handle, default: Outlet()].waiting.append(Waiting(place: place, value: value))
        if mayLeave, let task = Self.askPump(handle, &state) { tasks.append(task) }
      }
      if state.budget.needsEvidence, !state.isProbeAsked {
        state.isProbeAsked = true
        tasks.append(.probe(handle))
      }
      return .accepted
    }
    tasks.forEach(ask)
    return outcome
  }

  /// A request is asked for; ``pass(_:)`` has to follow.
  func addRequest() -> Place {
    state.withLock { Place(gate: self, number: $0.order.addRequest()) }
  }

  /// A request of this gate is with the daemon, or never will be: what was accepted after it may follow.
  func pass(_ request: Place) {
    let tasks: [Task] = state.withLock { state in
      state.order.pass(request.number)
      return state.outlets.keys.compactMap { handle in
        state.outlets[handle]?.waiting.isEmpty == false ? Self.askPump(handle, &state) : nil
      }
    }
    tasks.forEach(ask)
  }

  /// Sends at once where nothing waits before it.
  private static func send(_ value: Data, _ outlet: inout Outlet) -> Bool {
    guard outlet.waiting.isEmpty, !outlet.isHeld, !value.isEmpty, let socket = outlet.socket else {
      return false
    }
    return socket.send(value) == .sent
  }

  private static func askPump(_ handle: AttributeHandle, _ state: inout State) -> Task? {
    guard state.outlets[handle]?.isPumpAsked == false else { return nil }
    state.outlets[handle]?.isPumpAsked = true
    return .pump(handle)
  }

  // MARK: On the host's queue

  /// What pumping has come to.
  enum Pumped: Sendable {
    /// Nothing is left to do, or somebody else goes on.
    case done
    /// The characteristic has no descriptor.
    case needsSocket
    /// This value has to go by a call; ``called(_:)`` says that it is through.
    case call(Data)
    /// The descriptor is full: pump again when there is room.
    case full(AcquiredSocket)
    /// The daemon has closed the descriptor.
    case broken
  }

  func pump(_ handle: AttributeHandle) -> Pumped {
    state.withLock { state in
      state.outlets[handle]?.isPumpAsked = false
      guard state.isOpen, var outlet = state.outlets[handle] else { return .done }
      defer { state.outlets[handle] = outlet }
      while let next = outlet.waiting.first {
        let value = next.value
        guard state.order.mayLeave(next.place), !outlet.isHeld, !outlet.isCalling else { return .done }
        if outlet.usesCalls || (value.isEmpty && outlet.socket == nil) {
          outlet.isCalling = true
          return .call(value)
        }
        guard let socket = outlet.socket else { return .needsSocket }
        if value.isEmpty {
          // The daemon takes calls again once it has read everything and seen the end.
          guard socket.unread == 0 else { return .full(socket) }
          outlet.socket = nil
          continue
        }
        switch socket.send(value) {
        case .sent: outlet.waiting.removeFirst()
        case .full: return .full(socket)
        case .ended:
          outlet.socket = nil
          return .broken
        }
      }
      return .done
    }
  }

  /// The first waiting value has gone by a call.
  func called(_ handle: AttributeHandle) {
    let task = state.withLock { state -> Task? in
      state.outlets[handle]?.isCalling = false
      guard state.outlets[handle]?.waiting.isEmpty == false else { return nil }
      state.outlets[handle]?.waiting.removeFirst()
      return Self.askPump(handle, &state)
    }
    task.map(ask)
  }

  func setSocket(_ socket: AcquiredSocket?, usesCalls: Bool = false, of handle: AttributeHandle) {
    state.withLock { state in
      guard state.isOpen else { return }
      state.outlets[handle, default: Outlet()].socket = socket
      state.outlets[handle]?.usesCalls = usesCalls
    }
    ask(.pump(handle))
  }

  func hasSocket(_ handle: AttributeHandle) -> Bool {
    state.withLock { $0.outlets[handle]?.socket != nil }
  }

  /// What the daemon has not got of the values before a request.
  enum Rest: Sendable {
    case nothing
    /// Values that wait here: they are being moved.
    case waiting
    /// Values that it has yet to read from these descriptors.
    case unread([AcquiredSocket])
  }

  func rest(before request: Place) -> Rest {
    state.withLock { state in
      var unread: [AcquiredSocket] = []
      for outlet in state.outlets.values {
        if let next = outlet.waiting.first, next.place < request.number { return .waiting }
        if let socket = outlet.socket, socket.unread > 0 { unread.append(socket) }
      }
      return unread.isEmpty ? .nothing : .unread(unread)
    }
  }

  /// Whether values without response have gone over this link.
  var isUsed: Bool { state.withLock { !$0.outlets.isEmpty } }

  /// Takes a characteristic for a write with response, whose turn it is: the daemon takes none as long as somebody has its descriptor.
  func hold(_ handle: AttributeHandle) {
    state.withLock { state in
      guard state.outlets[handle] != nil else { return }
      state.outlets[handle]?.isHeld = true
      state.outlets[handle]?.socket = nil
    }
  }

  func release(_ handle: AttributeHandle) {
    let task = state.withLock { state -> Task? in
      state.outlets[handle]?.isHeld = false
      guard state.outlets[handle]?.waiting.isEmpty == false else { return nil }
      return Self.askPump(handle, &state)
    }
    task.map(ask)
  }

  /// A request is about to be sent: what its reply will prove.
  func beginEvidence() -> WriteBudget.Amount {
    state.withLock { state in
      state.isProbeAsked = true
      var unsent = WriteBudget.Amount()
      for outlet in state.outlets.values {
        let octets = outlet.waiting.reduce(0) { $0 + $1.value.count }
        unsent = unsent + WriteBudget.Amount(octets: octets, values: outlet.waiting.count)
        // The kernel accounts for more than 512 octets with each datagram.
        let unread = outlet.socket?.unread ?? 0
        unsent = unsent + WriteBudget.Amount(octets: unread, values: (unread + 511) / 512)
      }
      return state.budget.coverage(unsent: unsent)
    }
  }

  /// The reply has come, or (nil) something else has ended the request; returns who is to be told that there is room.
  func endEvidence(_ coverage: WriteBudget.Amount?) -> [UInt64] {
    var task: Task?
    let ready: [UInt64] = state.withLock { state in
      guard state.isOpen else { return [] }
      if let coverage { state.budget.confirm(coverage) }
      state.isProbeAsked = state.budget.needsEvidence
      if state.isProbeAsked { task = .probe(state.outlets.keys.min() ?? 0) }
      guard state.budget.hasRoom(for: Self.limit(state)) else { return [] }
      defer { state.owed = [] }
      return state.owed.sorted()
    }
    task.map(ask)
    return ready
  }

  /// Returns whether that is news.
  func setMTU(_ mtu: Int) -> Bool {
    state.withLock { state in
      defer { state.mtu = mtu }
      return state.mtu != mtu
    }
  }

  func setWritable(_ handles: Set<AttributeHandle>) {
    state.withLock { state in
      state.writable = handles
      state.outlets = state.outlets.filter { handles.contains($0.key) }
    }
  }

  /// The client has left: it is owed nothing.
  func forget(_ client: UInt64) { state.withLock { state in _ = state.owed.remove(client) } }

  /// The link is over; descriptors are closed.
  func close() {
    // They are let go of outside the lock.
    _ = state.withLock { state in
      state.isOpen = false
      defer { state.outlets = [:] }
      return state.outlets
    }
  }
}
