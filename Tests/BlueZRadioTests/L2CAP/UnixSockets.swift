import DBus
import Foundation
import Glibc
import Locking
import Radio
import SystemCalls
import Testing

@testable import BlueZRadio

/// Channels whose sockets are pairs, and that fail as a test says.
final class UnixSockets: L2CAPSockets {
  /// How an attempt to connect goes.
  enum Outcome: Sendable {
    case connected
    /// The call fails at once.
    case refused(Int32)
    /// Nothing happens until ``answer()``.
    case pending
    /// The socket has an error soon.
    case failing
  }

  private struct State {
    var outcome = Outcome.connected
    var listenErrors: [PSM: Int32] = [:]
    var acceptError: Int32?
    var demanded = L2CAPSecurity.low
    var requests: [L2CAPRequest] = []
    var listened: [PSM: L2CAPSecurity] = [:]
    var far: [UnixDescriptor] = []
    var waiting: [(UnixDescriptor, DeviceAddress)] = []
    var bell: UnixDescriptor?
  }

  private let state = PosixMutex(State())

  func set(_ outcome: Outcome, demanded: L2CAPSecurity = .low) {
    state.withLock {
      $0.outcome = outcome
      $0.demanded = demanded
    }
  }

  func failListening(_ errors: [PSM: Int32]) { state.withLock { $0.listenErrors = errors } }

  func failAccepting(_ error: Int32?) { state.withLock { $0.acceptError = error } }

  var requests: [L2CAPRequest] { state.withLock(\.requests) }

  var listened: [PSM: L2CAPSecurity] { state.withLock(\.listened) }

  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// The peer's end of the channel that was opened last.
  var far: FarEnd? { state.withLock { $0.far.last.map(FarEnd.init) } }

  private static func pair() throws(SystemError) -> (UnixDescriptor, UnixDescriptor) {
    var raw: [Int32] = [0, 0]
    guard unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &raw) == 0 else {
      throw SystemError("socketpair(2)")
    }
    return (UnixDescriptor(owning: raw[0]), UnixDescriptor(owning: raw[1]))
  }

  func connect(_ request: L2CAPRequest) throws(SystemError) -> UnixDescriptor {
    let outcome = state.withLock { state in
      state.requests.append(request)
      return state.outcome
    }
    if case .refused(let number) = outcome { throw SystemError("connect(2)", number) }
    let (near, far) = try Self.pair()
    switch outcome {
    case .connected, .refused: break
    case .pending: while PacketSocket.send([0, 0, 0, 0], to: near) == .sent {}
    case .failing:
      // Whoever closes with packets unread resets the connection.
      _ = PacketSocket.send([0], to: near)
      if let raw = far.take() { close(raw) }
    }
    state.withLock { $0.far.append(far) }
    return near
  }

  /// Lets a pending attempt succeed.
  func answer() throws {
    let far = try #require(far)
    var buffer = [UInt8](repeating: 0, count: 8)
    while case .packet(4) = PacketSocket.receive(into: &buffer, from: far.socket) {}
  }

  func listen(on psm: PSM, of adapter: DeviceAddress, _ security: L2CAPSecurity) throws(SystemError)
    -> UnixDescriptor
  {
    if let number = state.withLock({ $0.listenErrors[psm] }) { throw SystemError("bind(2)", number) }
    let (near, far) = try Self.pair()
    state.withLock { state in
      state.listened[psm] = security
      state.bell = far
    }
    return near
  }

  /// A device asks for a channel; returns its end of it.
  func arrive(_ address: DeviceAddress) throws -> FarEnd {
    let (near, far) = try Self.pair()
    let bell = state.withLock { state in
      state.waiting.append((near, address))
      return state.bell
    }
    if let bell { _ = PacketSocket.send([1], to: bell) }
    return FarEnd(far)
  }

  func accept(_ listener: UnixDescriptor) throws(SystemError) -> (UnixDescriptor, DeviceAddress)? {
    if let number = state.withLock(\.acceptError) { throw SystemError("accept4(2)", number) }
    var buffer: [UInt8] = [0]
    guard case .packet(1) = PacketSocket.receive(into: &buffer, from: listener) else { return nil }
    return state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
  }

  func limits(of socket: UnixDescriptor) throws(SystemError) -> SDUStream.Limits {
    SDUStream.Limits(sendMTU: 512, receiveMTU: 512, capacity: 4_096)
  }

  func security(of socket: UnixDescriptor) -> L2CAPSecurity? { state.withLock(\.demanded) }
}
