public import CoreBluetooth
public import Dispatch
internal import Foundation

/// A connection to one device that lives until it is ended: found, connected, discovered, and made again whenever it is lost.
///
/// What is under way is decided by ``ConnectionMachine``; ``states()`` tells it. Everything happens on ``queue``, which is also where the
/// device's `CBPeripheral` may be used.
///
///     let connection = DeviceConnection(to: .name("bench-1"), services: [ServiceRequirement(service)]) { event in
///       if case .value(let characteristic, nil) = event { use(characteristic.value) }
///     }
///     try await connection.connect()
///     try await connection.withPeripheral { $0.readRSSI() }
///
/// To have the system restore it, name a restore identifier in `managerOptions`: what a former run was connected to, or waiting for, is then
/// taken over by ``connect()`` without a search.
///
/// Release the object, or call ``disconnect()``, to end the connection.
public final class DeviceConnection: Sendable {
  /// Where a connection stands.
  public typealias State = ConnectionMachine.State

  /// The queue of the manager and its peripheral.
  public let queue: DispatchQueue
  private let core: ConnectionCore
  private let clock: any TransferClock

  /// Prepares a connection; nothing happens before ``connect()``.
  ///
  /// - Parameters:
  ///   - target: which device.
  ///   - services: what the device must have; it is discovered before the connection is ready. Empty: nothing is discovered.
  ///   - advertisedServices: services of which the device advertises one; empty: every advertisement is looked at, which a program in the
  ///     background is not allowed to do on some systems.
  ///   - configuration: limits and choices.
  ///   - memory: where the device is remembered, and recalled from; it also keeps other processes from the device.
  ///   - managerOptions: options for the `CBCentralManager`.
  ///   - queue: a serial queue.
  ///   - clock: limits and pauses run on it.
  ///   - onEvent: called on `queue` with what the peripheral tells.
  public init(
    to target: DeviceTarget, services: [ServiceRequirement] = [], advertisedServices: [CBUUID] = [],
    configuration: ConnectionConfiguration = ConnectionConfiguration(), memory: KnownDevices? = nil,
    managerOptions: [String: any Sendable] = [:],
    queue: DispatchQueue = DispatchQueue(label: "BulkTransfer.connection"),
    clock: any TransferClock = SystemClock(),
    onEvent: @escaping @Sendable (PeripheralEvent) -> Void = { _ in }
  ) {
    self.queue = queue
    self.clock = clock
    core = ConnectionCore(
      ConnectionDriver.Setup(
        target: target, services: services, advertised: advertisedServices.map(\.uuidString),
        configuration: configuration, memory: memory, managerOptions: managerOptions), clock: clock,
      queue: queue, onEvent: onEvent)
  }

  deinit {
    let core = core
    clock.async(on: queue) { core.close() }
  }

  /// The states from now on, the present one first; ends with the object. A consumer that does not keep up loses old ones.
  public func states() -> AsyncStream<State> {
    let core = core
    let (stream, continuation) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(64))
    clock.async(on: queue) { core.add(continuation) }
    return stream
  }

  /// Connects, and returns once the device has what is required of it.
  ///
  /// From then on a lost link is made again, as the configuration says, until ``disconnect()``. Where the connection is ready already, it
  /// returns at once. Cancelling the task gives the attempt up, unless others wait for it too.
  /// - Returns: the identifier by which this host knows the device.
  /// - Throws: `deviceNotFound`, `ambiguousDevice`, `disconnected`, `unsupportedDevice`, `radioUnavailable`, `locked`; `cancelled`.
  @discardableResult
  public func connect() async throws(TransferError) -> UUID {
    let core = core
    let attempt = ConnectionCore.Attempt()
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        clock.async(on: queue) { core.connect(attempt, continuation) }
      }
    } onCancel: {
      clock.async(on: queue) { core.cancel(attempt) }
    }
    return try outcome.get()
  }

  /// Ends the connection or the attempt to make one; the device stays remembered. Returns when that was asked of the system.
  public func disconnect() async { await run { $0.driver.handle(.disconnect) } }

  /// Ends the connection and removes the device from memory, so that no later run connects to it by itself.
  public func forget() async { await run { $0.driver.handle(.forget) } }

  /// Says that the device was told to start anew: it ends the link by itself within `limit`, or the link is ended then, and in both cases made
  /// again. Whether the device has answered before does not matter.
  public func expectRestart(within limit: Duration) async {
    await run { $0.driver.handle(.restartExpected(within: limit)) }
  }

  /// Uses the device on the connection's queue, while it is ready.
  ///
  /// - Throws: `disconnected` while the connection is not ready; what `body` throws.
  public func withPeripheral<Result: Sendable>(
    _ body: @escaping @Sendable (CBPeripheral) throws -> Result
  ) async throws -> Result {
    let core = core
    return try await withCheckedThrowingContinuation { continuation in
      clock.async(on: queue) { continuation.resume(with: core.use(body)) }
    }
  }

  private func run(_ body: @escaping @Sendable (ConnectionCore) -> Void) async {
    let core = core
    await withCheckedContinuation { continuation in
      clock.async(on: queue) {
        body(core)
        continuation.resume()
      }
    }
  }
}
