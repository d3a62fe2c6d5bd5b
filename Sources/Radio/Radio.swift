public import Foundation

/// A Bluetooth LE adapter, or something that behaves as one.
///
/// This module is the seam between an API for programs (above) and what carries its bytes (below). It holds two
/// protocols, ``CentralRadio`` and ``PeripheralRadio``, and the values that cross them. It does no I/O.
///
/// ## Rules that every radio keeps
///
/// 1. **Commands return at once.** No method waits for the air, a daemon or another process. Methods may be called from
///    any thread, also concurrently.
/// 2. **Events are posted, not delivered.** A radio calls its event sink serially, in the order in which things happened,
///    perhaps with its own locks held. A sink therefore stores the event and returns; it never calls the radio. Use an
///    ``EventInbox`` as the sink: it hands events on to a dispatch queue.
/// 3. **An event never overtakes its cause.** What a getter tells is at least as new as the last event posted.
/// 4. **The first event is the adapter's state.** A radio posts ``CentralEvent/adapterStateChanged(_:)`` (or the peripheral's)
///    once soon after it was made, and again at each change.
/// 5. **Every request is answered exactly once**, either by its reply or, when the link ends first, by the disconnection
///    event: a disconnection ends all pending requests of that link, and no event of that link is posted after it.
/// 6. **A peer cannot cause a trap.** Whatever arrives ends in an event with a value or with an error.
/// 7. **Memory is bounded.** What a peer can make a radio store has a stated bound.
public protocol Radio: AnyObject, Sendable {
  /// The words with which a person chose this radio, such as `virtual:DIR` or `bluez:hci0`.
  var name: String { get }

  /// The time in which this radio lives; timers of programs above it must run on the same clock.
  var clock: any RadioClock { get }

  /// Whether this process may use the radio. While it may not, ``AdapterState/unauthorized`` is the state of its adapter.
  var authorization: RadioAuthorization { get }

  /// Makes a client of the central role; it ends when the object is released.
  func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio

  /// Makes a client of the peripheral role; it ends when the object is released.
  func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio
}

extension Radio {
  /// Allowed: the answer of a radio that nobody guards.
  public var authorization: RadioAuthorization { .allowed }
}

/// Whether a process may use a radio, and if not, whether anybody can change that.
public enum RadioAuthorization: Hashable, Sendable {
  /// Somebody has yet to be asked.
  case notDetermined
  /// Nobody may, in this place: a sandbox or the system's policy.
  case restricted
  /// This user may not.
  case denied
  case allowed
}

/// Identifies a remote device to this host, stable over restarts; never its address on the air.
public struct PeerID: Hashable, Sendable, CustomStringConvertible {
  /// The identifier that programs see.
  public var uuid: UUID

  /// Wraps an identifier.
  public init(_ uuid: UUID) { self.uuid = uuid }

  public var description: String { uuid.uuidString }
}

/// Numbers a request; chosen by the caller, unique per client while the request is pending.
public struct RequestID: Hashable, Sendable {
  /// The number.
  public var rawValue: UInt64

  /// Wraps a number.
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// The protocol/service multiplexer of an LE credit-based channel (Core Vol 3 Part A 4.22): 0x0001...0x00FF.
public typealias PSM = UInt16

/// What an adapter can do right now.
public enum AdapterState: Sendable, Hashable {
  /// Not known yet.
  case unknown
  /// The daemon or controller went away and is expected back.
  case resetting
  /// There is no LE adapter, or it lacks the role.
  case unsupported
  /// This process may not use it.
  case unauthorized
  /// There, but switched off.
  case poweredOff
  /// Ready; the only state in which commands are accepted.
  ///
  /// In all others, commands that have an answer of their own fail: those of the peripheral role with ``RadioError/Code/notPoweredOn``, requests
  /// to a device with ``RadioError/Code/notConnected``, since there is no link. The rest are ignored, among them
  /// connecting, which is over with the power.
  case poweredOn
}
