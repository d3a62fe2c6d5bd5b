internal import BulkTransfer
internal import CoreBluetooth
internal import VirtualRadio

/// A device with a flash memory in this process, and the simulated air between it and a sender.
final class SimulatedDevice: Sendable {
  let name: String
  let air: VirtualAir
  let flash: SimulatedFlash
  /// The adapter of the device.
  let radio: VirtualRadio
  /// The adapter of who sends.
  let sender: VirtualRadio
  /// The time of the air, for the engine at both ends.
  let time: RadioTime
  private let receiver: ReceiveOperation

  /// Makes the device; it is there while ``run(tell:_:)`` runs.
  init(name: String, flash: SimulatedFlash, air: VirtualAir, senderName: String) throws(TransferError) {
    self.name = name
    self.flash = flash
    self.air = air
    radio = air.makeRadio(name: name)
    sender = air.makeRadio(name: senderName)
    time = RadioTime(air.clock)
    receiver = ReceiveOperation(
      into: flash, options: try ReceiveOptions(name: name), managerOptions: [CBManagerOptionRadioKey: radio],
      clock: time)
  }

  /// Lets the device advertise, does `work`, and takes the device away again. In lock-step, time runs by itself meanwhile.
  ///
  /// - Parameter tell: is told what happens at the device's end.
  /// - Throws: what `work` throws, why the device could not be there, or why time could not be driven.
  func run<Value: Sendable>(
    tell: @escaping @Sendable (ReceiveEvent) -> Void = { _ in },
    _ work: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let clock = air.clock
    let (outcomes, outcome) = AsyncStream.makeStream(of: Result<Value, any Error>.self)
    if clock.mode == .lockStep {
      // Nothing can be waited for when simulated time stands still.
      try clock.start { error in outcome.yield(.failure(error)) }
    }
    defer { if clock.mode == .lockStep { clock.stop() } }
    let device = Task { [receiver] in try await receiver.run() }
    defer { device.cancel() }
    let (readiness, ready) = AsyncStream.makeStream(of: Void.self)
    let watcher = Task { [receiver] in
      for await event in receiver.events {
        if case .ready = event { ready.yield() }
        tell(event)
      }
      ready.finish()
    }
    // Simulated time would pass the device by before it advertises.
    var isReady = false
    for await _ in readiness {
      isReady = true
      break
    }
    guard isReady else {
      // Interrupted, or the device has an error of its own.
      device.cancel()
      try await device.value
      throw CancellationError()
    }
    let working = Task {
      do {
        outcome.yield(.success(try await work()))
      } catch {
        outcome.yield(.failure(error))
      }
    }
    // For a cancelled task a stream is at its end: a task of its own hears the outcome.
    let ending = Task { await outcomes.first { _ in true } }
    let first = await withTaskCancellationHandler {
      await ending.value
    } onCancel: {
      working.cancel()
    }
    guard let first else { throw CancellationError() }
    let value: Value
    do {
      value = try first.get()
    } catch let error as TransferError where error.code == .cancelled {
      // The device goes with this process: nothing is kept that could be gone on with.
      throw CancellationError()
    }
    device.cancel()
    _ = await device.result
    await watcher.value
    return value
  }
}
