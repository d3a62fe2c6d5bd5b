internal import CoreBluetooth
internal import Dispatch
internal import Foundation

/// A device whose link can be tested: publishes the link test service beside whatever else the adapter offers, and does what is asked by it.
///
/// It does not advertise. Everything happens on one serial queue; one object runs once.
package final class LinkTestDevice: Sendable {
  private let driver: LinkTestDeviceDriver
  private let clock: any TransferClock

  /// Prepares a device; nothing happens before ``run()``.
  ///
  /// - Parameters:
  ///   - offersChannel: whether there is an L2CAP channel, too.
  ///   - managerOptions: options for the `CBPeripheralManager`, such as the radio.
  ///   - clock: the time of the radio.
  package init(
    offersChannel: Bool = true, managerOptions: [String: any Sendable] = [:],
    clock: any TransferClock = SystemClock()
  ) {
    self.clock = clock
    driver = LinkTestDeviceDriver(
      offersChannel: offersChannel, managerOptions: managerOptions, clock: clock,
      queue: DispatchQueue(label: "BulkTransfer.linkTestDevice"))
  }

  /// Serves until the task is cancelled.
  ///
  /// - Parameter settled: called once, when the service is published, or the adapter turns out not to be usable for now.
  /// - Throws: why the service could not be published.
  package func run(settled: @escaping @Sendable () -> Void = {}) async throws(TransferError) {
    let driver = driver
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        clock.async(on: driver.queue) { driver.start(continuation, settled: settled) }
      }
    } onCancel: {
      clock.async(on: driver.queue) { driver.finish(.success(())) }
    }
    try outcome.get()
  }
}

// Sendable: everything is touched on `queue` only, by Core Bluetooth's callbacks and the hops of the device.
private final class LinkTestDeviceDriver: NSObject, CBPeripheralManagerDelegate, @unchecked Sendable {
  typealias Outcome = Result<Void, TransferError>

  /// Octets that a central is still to get.
  private struct Source {
    let central: CBCentral
    var left: Int
  }

  /// Values that wait to be sent back, and channels that are open, at most; who goes beyond has no use for the answer.
  private static let mostEchoes = 64
  private static let mostChannels = 16
  /// Values that are handed over before others have their turn: also a radio that takes everything does not keep the queue.
  private static let valuesInTurn = 256

  let queue: DispatchQueue
  private let clock: any TransferClock
  private let offersChannel: Bool
  private let managerOptions: [String: any Sendable]
  private var manager: CBPeripheralManager?
  private var source: CBMutableCharacteristic?
  private var echo: CBMutableCharacteristic?
  private var publishedPSM: UInt16?
  private var sources: [Source] = []
  private var echoes: [(central: CBCentral, value: Data)] = []
  private var channels: [LinkTestChannel] = []
  private var continuation: CheckedContinuation<Outcome, Never>?
  private var settled: (@Sendable () -> Void)?
  private var outcome: Outcome?

  init(
    offersChannel: Bool, managerOptions: [String: any Sendable], clock: any TransferClock,
    queue: DispatchQueue
  ) {
    self.offersChannel = offersChannel
    self.managerOptions = managerOptions
    self.clock = clock
    self.queue = queue
  }

  func start(_ continuation: CheckedContinuation<Outcome, Never>, settled: @escaping @Sendable () -> Void) {
    if let outcome { return continuation.resume(returning: outcome) }
    guard manager == nil else {
      return continuation.resume(
        returning: .failure(
          TransferError(.invalidArgument, "a device runs once", advice: "make another one")))
    }
    self.continuation = continuation
    self.settled = settled
    var options: [String: Any] = managerOptions
    options[CBPeripheralManagerOptionShowPowerAlertKey] = false
    manager = CBPeripheralManager(delegate: self, queue: queue, options: options)
  }

  func finish(_ outcome: Outcome) {
    guard self.outcome == nil else { return }
    self.outcome = outcome
    settle()
    withdraw()
    manager?.delegate = nil
    manager = nil
    continuation?.resume(returning: outcome)
    continuation = nil
  }

  private func settle() {
    settled?()
    settled = nil
  }

  // MARK: Publishing

  /// What belonged to links ends.
  private func dropLinks() {
    sources = []
    echoes = []
    for channel in channels { channel.close() }
    channels = []
  }

  /// Nothing is offered any more; of an adapter that is off there is nothing to withdraw.
  private func withdraw() {
    dropLinks()
    let manager = manager.poweredOn
    if let publishedPSM { manager?.unpublishL2CAPChannel(publishedPSM) }
    publishedPSM = nil
    if source != nil { manager?.removeAllServices() }
    source = nil
    echo = nil
  }

  private func publish(psm: UInt16?) {
    // The answer to a request of before the adapter went off: once it is on again, all this is asked for anew.
    guard let manager = manager.poweredOn else { return }
    publishedPSM = psm
    let sink = CBMutableCharacteristic(
      type: LinkTestService.sink, properties: .write, value: nil, permissions: .writeable)
    let source = CBMutableCharacteristic(
      type: LinkTestService.source, properties: [.write, .notify], value: nil, permissions: .writeable)
    let echo = CBMutableCharacteristic(
      type: LinkTestService.echo, properties: [.writeWithoutResponse, .notify], value: nil,
      permissions: .writeable)
    let service = CBMutableService(type: LinkTestService.service, primary: true)
    service.characteristics = [sink, source, echo]
    if let psm {
      service.characteristics?.append(
        CBMutableCharacteristic(
          type: LinkTestService.psm, properties: .read,
          value: Data([UInt8(truncatingIfNeeded: psm), UInt8(psm >> 8)]), permissions: .readable))
    }
    self.source = source
    self.echo = echo
    manager.add(service)
  }

  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    dropLinks()
    switch peripheral.state {
    case .poweredOn: break
    case .unknown, .resetting: return
    default: return settle()
    }
    // An adapter that was only switched off has kept what was published: that is made anew, not a second time.
    withdraw()
    if offersChannel {
      peripheral.publishL2CAPChannel(withEncryption: false)
    } else {
      publish(psm: nil)
    }
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
  ) {
    // Without a channel there is still GATT.
    publish(psm: error == nil ? PSM : nil)
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
    guard let error else { return settle() }
    finish(
      .failure(
        TransferError(
          .radioUnavailable, "cannot publish the link test service: \(error.localizedDescription)")))
  }

  // MARK: Values

  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
    guard let first = requests.first else { return }
    guard requests.allSatisfy({ $0.offset == 0 }) else {
      return peripheral.respond(to: first, withResult: .invalidOffset)
    }
    let orders = requests.filter { $0.characteristic === source }
    guard orders.allSatisfy({ $0.value.flatMap(LinkTestOrder.count) != nil }) else {
      return peripheral.respond(to: first, withResult: .invalidAttributeValueLength)
    }
    peripheral.respond(to: first, withResult: .success)
    for request in requests {
      if request.characteristic === echo, let value = request.value, echoes.count < Self.mostEchoes {
        echoes.append((request.central, value))
      }
    }
    for order in orders {
      sources.removeAll { $0.central.identifier == order.central.identifier }
      let isSubscribed = source?.subscribedCentrals?.contains { $0.identifier == order.central.identifier }
      guard isSubscribed == true, let count = order.value.flatMap(LinkTestOrder.count) else { continue }
      sources.append(Source(central: order.central, left: count))
    }
    pump()
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
  ) {
    if characteristic === source { sources.removeAll { $0.central.identifier == central.identifier } }
    if characteristic === echo { echoes.removeAll { $0.central.identifier == central.identifier } }
  }

  func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { pump() }

  private func pump() {
    guard let manager, let source, let echo else { return }
    while let next = echoes.first {
      guard manager.updateValue(next.value, for: echo, onSubscribedCentrals: [next.central]) else { return }
      echoes.removeFirst()
    }
    for _ in 0..<Self.valuesInTurn {
      guard let next = sources.first else { return }
      let count = min(next.left, max(next.central.maximumUpdateValueLength, 1), LinkTestService.pattern.count)
      if count > 0 {
        let value = LinkTestService.pattern.prefix(count)
        guard manager.updateValue(value, for: source, onSubscribedCentrals: [next.central]) else { return }
      }
      sources[0].left -= count
      if sources[0].left <= 0 { sources.removeFirst() }
    }
    clock.async(on: queue) { [weak self] in self?.pump() }
  }

  // MARK: Channels

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?
  ) {
    guard let channel, error == nil, channels.count < Self.mostChannels else { return }
    let test = LinkTestChannel(channel, queue: queue) { [weak self] ended in
      self?.channels.removeAll { $0 === ended }
    }
    if let test { channels.append(test) }
  }
}

/// One channel of a device, which does what its first octets say.
private final class LinkTestChannel {
  /// Octets that wait to be sent back; meanwhile nothing is read, and the peer runs out of credits.
  private static let mostWaiting = 1 << 16

  private var port: ChannelPort?
  private var header = Data()
  private var order: LinkTestOrder?
  private var left = 0
  private var waiting = Data()
  private let ended: (LinkTestChannel) -> Void

  init?(_ channel: CBL2CAPChannel, queue: DispatchQueue, ended: @escaping (LinkTestChannel) -> Void) {
    self.ended = ended
    port = ChannelPort(channel, queue: queue) { [weak self] event in self?.handle(event) }
    if port == nil { return nil }
  }

  func close() {
    port?.close()
    port = nil
  }

  private func handle(_ event: ChannelPort.Event) {
    switch event {
    case .readable: read()
    case .writable:
      write()
      read()
    case .ended:
      close()
      ended(self)
    }
  }

  private func read() {
    while waiting.count < Self.mostWaiting, let bytes = port?.read(), !bytes.isEmpty {
      var bytes = bytes
      if order == nil {
        let count = min(LinkTestOrder.length - header.count, bytes.count)
        header += bytes.prefix(count)
        bytes = bytes.dropFirst(count)
        guard header.count == LinkTestOrder.length else { return }
        guard let order = LinkTestOrder(header) else {
          close()
          return ended(self)
        }
        self.order = order
        if case .send(let count) = order { left = count }
      }
      if order == .sendBack { waiting += bytes }
      write()
    }
  }

  private func write() {
    while !waiting.isEmpty, let count = port?.write(waiting), count > 0 {
      waiting = Data(waiting.dropFirst(count))
    }
    while left > 0, let count = port?.write(LinkTestService.pattern.prefix(left)), count > 0 { left -= count }
  }
}
