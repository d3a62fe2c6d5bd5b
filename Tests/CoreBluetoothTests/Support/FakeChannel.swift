import Locking
import Foundation
import Radio

/// A channel whose far end is the test: it feeds bytes, gives room, and takes what was written.
final class FakeChannel: RadioChannel {
  private struct State: Sendable {
    var sink: (@Sendable (ChannelEvent) -> Void)?
    var arrived = Data()
    /// The program has seen that there was nothing to read, or read less than it asked for.
    var awaitsBytes = true
    var room: Int
    var awaitsRoom = false
    var sent = Data()
    var end: ChannelEvent?
    var closes = 0
  }

  let psm: PSM
  let peer: PeerID
  private let state: PosixMutex<State>
  private let onRelease: @Sendable () -> Void

  init(psm: PSM = 0x80, peer: PeerID, room: Int = .max, onRelease: @escaping @Sendable () -> Void = {}) {
    self.psm = psm
    self.peer = peer
    self.onRelease = onRelease
    state = PosixMutex(State(room: room))
  }

  deinit { onRelease() }

  var sent: Data { state.withLock { $0.sent } }
  /// How many bytes have arrived and were not read.
  var waiting: Int { state.withLock { $0.arrived.count } }
  var room: Int { state.withLock { $0.room } }
  var closes: Int { state.withLock { $0.closes } }

  /// Bytes arrive. The sink is called with the lock held, as the seam allows.
  func feed(_ bytes: Data) {
    state.withLock { state in
      guard state.end == nil else { return }
      state.arrived += bytes
      if state.awaitsBytes, !bytes.isEmpty {
        state.awaitsBytes = false
        state.sink?(.readable)
      }
    }
  }

  /// Room for more bytes to send.
  func give(_ room: Int) {
    state.withLock { state in
      state.room += room
      if state.awaitsRoom, state.room > 0 {
        state.awaitsRoom = false
        state.sink?(.writable)
      }
    }
  }

  /// The link or the far end is gone.
  func end(_ error: RadioError?) {
    state.withLock { state in
      guard state.end == nil else { return }
      state.end = .closed(error)
      state.sink?(.closed(error))
    }
  }

  // MARK: RadioChannel

  func setSink(_ sink: (@Sendable (ChannelEvent) -> Void)?) {
    state.withLock { state in
      state.sink = sink
      guard let sink else { return }
      if !state.arrived.isEmpty {
        state.awaitsBytes = false
        sink(.readable)
      }
      if let end = state.end { sink(end) }
    }
  }

  func read(upTo count: Int) -> Data {
    state.withLock { state in
      let bytes = Data(state.arrived.prefix(count))
      state.arrived = state.arrived.dropFirst(bytes.count)
      if bytes.count < count { state.awaitsBytes = true }
      return bytes
    }
  }

  var hasBytes: Bool { state.withLock { !$0.arrived.isEmpty } }

  func write(_ bytes: Data) -> Int {
    state.withLock { state in
      guard state.end == nil else { return 0 }
      let taken = bytes.prefix(state.room)
      state.sent += taken
      state.room -= taken.count
      if taken.count < bytes.count { state.awaitsRoom = true }
      return taken.count
    }
  }

  var hasSpace: Bool {
    state.withLock { state in
      guard state.end == nil else { return false }
      if state.room == 0 { state.awaitsRoom = true }
      return state.room > 0
    }
  }

  func close() {
    state.withLock { $0.closes += 1 }
    end(nil)
  }
}
