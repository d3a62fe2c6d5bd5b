internal import Dispatch
internal import Foundation

/// A device that takes objects: the receiving end of the haul protocol on a Core Bluetooth peripheral manager.
///
/// Everything happens on one serial queue. One operation runs once.
public final class ReceiveOperation: Sendable {
  /// What happens, in order; ends with the operation. Progress and losses of data are thinned out; nothing else is lost to a listener that is
  /// slow; see ``ReceiveOptions/unheardLimit``.
  public let events: EventFeed<ReceiveEvent>

  private let driver: ReceiveDriver
  private let queue: DispatchQueue
  private let clock: any TransferClock

  /// Prepares a receiver; nothing happens before ``run()``.
  ///
  /// - Parameters:
  ///   - storage: where objects go.
  ///   - options: name, buffer and the like.
  ///   - managerOptions: options for the `CBPeripheralManager`, such as the radio.
  ///   - clock: intervals and simulated media run on it.
  public init(
    into storage: any ReceiverStorage, options: ReceiveOptions, managerOptions: [String: any Sendable] = [:],
    clock: any TransferClock = SystemClock()
  ) {
    let queue = DispatchQueue(label: "BulkTransfer.receive")
    events = EventFeed { event in
      switch event {
      case .session(.progress, _, _): .received
      case .session(.lost, _, _): .lost
      default: nil
      }
    }
    self.queue = queue
    self.clock = clock
    driver = ReceiveDriver(
      storage: storage, options: options, managerOptions: managerOptions, clock: clock, queue: queue,
      events: events)
  }

  /// Receives until the task is cancelled or, with ``ReceiveOptions/once``, until a sender was served.
  ///
  /// What is verified of an unfinished object is made durable before it returns.
  /// - Throws: why the receiver could not be published, or `radioUnavailable`.
  public func run() async throws(TransferError) {
    let driver = driver
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        clock.async(on: queue) { driver.start(continuation) }
      }
    } onCancel: {
      clock.async(on: queue) { driver.stop() }
    }
    try outcome.get()
  }
}
