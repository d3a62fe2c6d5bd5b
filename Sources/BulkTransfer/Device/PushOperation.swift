internal import Dispatch
internal import CoreBluetooth
internal import Foundation

/// Sends objects to one device until it has verified all of them, over as many links as that takes.
///
/// Everything happens on one serial queue. One operation runs once.
public final class PushOperation: Sendable {
  /// What happens, in order; ends with the operation. Progress is thinned out; nothing else is lost to a listener that is slow.
  public let events: EventFeed<PushEvent>

  let driver: PushDriver
  let queue: DispatchQueue
  private let clock: any TransferClock

  /// Prepares a push; nothing happens before ``run()``.
  ///
  /// - Parameters:
  ///   - objects: what to send, in this order, at least one.
  ///   - transferID: identity of the contents; its first sixteen octets travel with each offer.
  ///   - target: the device.
  ///   - options: how.
  ///   - record: called on the operation's queue with the durable offset of each object, from time to time and at the end, for a journal.
  ///   - observe: called on the operation's queue whenever what the transfer waits for changes, or more has arrived, with the time of `clock`.
  ///   - memory: where the device is remembered, and recalled from; it also keeps other processes from the device.
  ///   - managerOptions: options for the `CBCentralManager`, such as the radio.
  ///   - clock: time limits, rates and intervals run on it.
  /// - Throws: `invalidArgument` for options outside their ranges.
  public init(
    _ objects: [PushObject], transferID: SHA256Digest, to target: DeviceTarget,
    options: PushOptions = PushOptions(),
    record: (@Sendable (_ durable: [UInt64], _ facts: [String: String]) -> Void)? = nil,
    observe: (@Sendable (_ activity: TransferActivity, _ now: Duration) -> Void)? = nil,
    memory: KnownDevices? = nil, managerOptions: [String: any Sendable] = [:],
    clock: any TransferClock = SystemClock()
  ) throws(TransferError) {
    let queue = DispatchQueue(label: "BulkTransfer.push")
    events = EventFeed { event in
      guard case .progress(let state) = event else { return nil }
      return .progress(object: state.objectIndex, state.phase, state.coding)
    }
    self.queue = queue
    self.clock = clock
    driver = try PushDriver(
      objects, transferID: transferID, target: target, options: options, record: record, observe: observe,
      memory: memory, managerOptions: managerOptions, clock: clock, queue: queue, events: events)
  }

  /// Runs to the end.
  ///
  /// Cancelling the task ends the push in order: the device keeps what is durable, and another push of the same objects goes on there.
  /// - Throws: why it ended without success; `cancelled` after cancellation.
  public func run() async throws(TransferError) -> PushReport {
    let driver = driver
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        clock.async(on: queue) { driver.start(continuation) }
      }
    } onCancel: {
      clock.async(on: queue) { driver.cancel() }
    }
    return try outcome.get()
  }

  /// Stops sending data until ``resume()``; the link stays.
  public func pause() {
    let driver = driver
    clock.async(on: queue) { driver.setPaused(true) }
  }

  /// Goes on after ``pause()``.
  public func resume() {
    let driver = driver
    clock.async(on: queue) { driver.setPaused(false) }
  }
}

extension TransferError {
  /// The user has ended a push.
  static var pushCancelled: TransferError {
    TransferError(
      .cancelled, "the transfer was cancelled",
      advice: "the device keeps what it has; the same push goes on there",
      isRetriable: true)
  }
}
