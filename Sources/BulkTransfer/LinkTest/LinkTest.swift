internal import CoreBluetooth
internal import Dispatch
internal import Foundation

/// Tests the link to a device that has the link test service.
package final class LinkTest: Sendable {
  /// What is done over the link.
  package enum Kind: Hashable, Sendable {
    /// So many octets to the device, by writes with response.
    case writes(octets: Int)
    /// So many octets to this host, by notifications.
    case notifications(octets: Int)
    /// So many octets to this host, on a channel.
    case channel(octets: Int)
    /// So many times a few octets there and back, one after the other.
    case roundTrips(RoundTrip, count: Int)
  }

  /// What goes there and back.
  package enum RoundTrip: Hashable, Sendable {
    /// A write without response, and a notification.
    case values
    /// A write with response, and the response.
    case response
    /// Octets on a channel.
    case channel
  }

  /// Octets that go there in a round trip; they fit every ATT MTU.
  package static let roundTripOctets = 20

  private let driver: LinkTestDriver
  private let clock: any TransferClock

  /// Prepares a test; nothing happens before ``run()``.
  ///
  /// - Parameters:
  ///   - stepLimit: how long each step, such as an answer of the device, may take.
  ///   - observe: called on the test's queue whenever what it waits for changes, or more has arrived, with the time of `clock`. From the first
  ///     call on, the link is tested; the last one has ``TransferActivity/Hold/farewell``.
  ///   - managerOptions: options for the `CBCentralManager`, such as the radio.
  package init(
    _ kind: Kind, to target: DeviceTarget, stepLimit: Duration = .seconds(10),
    observe: @escaping @Sendable (_ activity: TransferActivity, _ now: Duration) -> Void = { _, _ in },
    managerOptions: [String: any Sendable] = [:], clock: any TransferClock = SystemClock()
  ) {
    self.clock = clock
    driver = LinkTestDriver(
      kind, target: target, stepLimit: stepLimit, observe: observe, managerOptions: managerOptions,
      clock: clock)
  }

  /// Runs once.
  ///
  /// - Returns: how long each round trip has taken; empty for other kinds.
  /// - Throws: what ``DeviceConnection/connect()`` throws, `disconnected` where the link is lost meanwhile, `timedOut` where an answer does not come,
  ///   `cancelled`.
  package func run() async throws(TransferError) -> [Duration] {
    let driver = driver
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        clock.async(on: driver.queue) { driver.start(continuation) }
      }
    } onCancel: {
      clock.async(on: driver.queue) {
        driver.end(.failure(TransferError(.cancelled, "the test was cancelled", isRetriable: true)))
      }
    }
    return try outcome.get()
  }
}

// Sendable: everything is touched on `queue` only.
private final class LinkTestDriver: ConnectionClient, @unchecked Sendable {
  typealias Outcome = Result<[Duration], TransferError>

  /// How long the link rests before the test, so that the host can ask what it wants to know of a new link for itself: so many times what one request of ours
  /// has taken, and at least a second.
  private static let settleTime = (least: Duration.seconds(1), most: Duration.seconds(60), factor: 12)

  private enum Phase {
    case connecting, preparing, settling, testing, ended
  }

  let queue = DispatchQueue(label: "BulkTransfer.linkTest")
  private let kind: LinkTest.Kind
  private let clock: any TransferClock
  private let stepLimit: Duration
  private let observe: @Sendable (TransferActivity, Duration) -> Void
  private let connection: ConnectionDriver
  private var continuation: CheckedContinuation<Outcome, Never>?
  private var timer: QueueTimer?
  private var due = Duration.zero
  private var phase = Phase.connecting
  private var port: ChannelPort?
  /// Octets or round trips that are over.
  private var done = 0
  private var unwritten = Data()
  private var awaited = 0
  private var sentAt = Duration.zero
  /// When the first request was made, which also tells how long one takes.
  private var askedAt = Duration.zero
  private var roundTrips: [Duration] = []

  init(
    _ kind: LinkTest.Kind, target: DeviceTarget, stepLimit: Duration,
    observe: @escaping @Sendable (TransferActivity, Duration) -> Void,
    managerOptions: [String: any Sendable], clock: any TransferClock
  ) {
    self.kind = kind
    self.clock = clock
    self.stepLimit = stepLimit
    self.observe = observe
    var configuration = ConnectionConfiguration()
    configuration.limitSteps(to: stepLimit)
    configuration.reconnects = false
    connection = ConnectionDriver(
      ConnectionDriver.Setup(
        target: target, services: [LinkTestService.requirement], configuration: configuration,
        managerOptions: managerOptions), clock: clock, queue: queue)
    connection.client = self
    timer = QueueTimer(clock: clock, queue: queue) { [weak self] in self?.timePassed() }
  }

  func start(_ continuation: CheckedContinuation<Outcome, Never>) {
    guard phase == .connecting, self.continuation == nil else {
      return continuation.resume(
        returning: .failure(TransferError(.cancelled, "the test is over", isRetriable: true)))
    }
    self.continuation = continuation
    connection.connect()
  }

  func end(_ outcome: Outcome) {
    guard phase != .ended else { return }
    phase = .ended
    timer?.cancel()
    port?.close()
    port = nil
    connection.stop()
    continuation?.resume(returning: outcome)
    continuation = nil
  }

  private func fail(_ code: TransferError.Code, _ message: String, advice: String? = nil) {
    end(.failure(TransferError(code, message, advice: advice, isRetriable: code != .unsupportedDevice)))
  }

  // MARK: Time

  private func wait(for limit: Duration) {
    due = clock.now + limit
    timer?.set(to: due)
  }

  private func timePassed() {
    guard phase != .connecting, phase != .ended else { return }
    guard clock.now >= due else { return timer?.set(to: due) ?? () }
    if phase == .settling { return begin() }
    fail(.timedOut, "the device has not answered within \(stepLimit)")
  }

  // MARK: Steps

  func connectionEntered(_ state: ConnectionMachine.State) {
    switch state {
    case .ready where phase == .connecting: prepare()
    case .failed(let error): end(.failure(error))
    default: break
    }
  }

  func connectionEnded(_ why: String) {
    if phase != .connecting { fail(.disconnected, "the link was lost while it was tested: \(why)") }
  }

  func connectionMemoryFailed(_ error: TransferError) {}

  private func characteristic(_ uuid: CBUUID) -> CBCharacteristic? {
    connection.service(LinkTestService.service.uuidString)?.characteristics?.first { $0.uuid == uuid }
  }

  private func prepare() {
    phase = .preparing
    askedAt = clock.now
    wait(for: stepLimit)
    switch kind {
    case .writes, .roundTrips(.response, _):
      guard let sink = characteristic(LinkTestService.sink) else { return }
      connection.peripheral?.writeValue(Data([0]), for: sink, type: .withResponse)
    case .notifications: subscribe(to: LinkTestService.source)
    case .roundTrips(.values, _): subscribe(to: LinkTestService.echo)
    case .channel, .roundTrips(.channel, _):
      guard let psm = characteristic(LinkTestService.psm) else {
        return fail(.unsupportedDevice, "the device offers no L2CAP channel for link tests")
      }
      connection.peripheral?.readValue(for: psm)
    }
  }

  private func subscribe(to uuid: CBUUID) {
    guard let characteristic = characteristic(uuid) else {
      return fail(.disconnected, "the device's services have changed")
    }
    connection.peripheral?.setNotifyValue(true, for: characteristic)
  }

  private func settle() {
    phase = .settling
    let (least, most, factor) = Self.settleTime
    wait(for: min(max((clock.now - askedAt) * factor, least), most))
  }

  private func begin() {
    phase = .testing
    wait(for: stepLimit)
    switch kind {
    case .writes:
      tell(.receipts)
      writeNext()
    case .notifications(let octets):
      tell(.agreement)
      guard let source = characteristic(LinkTestService.source) else { return }
      connection.peripheral?.writeValue(LinkTestOrder.encoded(octets), for: source, type: .withResponse)
    case .channel(let octets):
      tell(.agreement)
      send(LinkTestOrder.send(octets).encoded)
    case .roundTrips(let way, _):
      tell(.receipts)
      // The order is the first octets of the first round trip.
      if way == .channel { unwritten = LinkTestOrder.sendBack.encoded }
      goThere(way)
    }
  }

  private func tell(_ hold: TransferActivity.Hold) {
    observe(TransferActivity(hold: hold, received: UInt64(done)), clock.now)
  }

  /// More has arrived, where it was to.
  private func arrived(_ count: Int, of total: Int, then hold: TransferActivity.Hold) {
    done = min(done + count, total)
    tell(done < total ? hold : .farewell)
    if done < total { wait(for: stepLimit) } else { end(.success(roundTrips)) }
  }

  private func writeNext() {
    guard case .writes(let octets) = kind, let sink = characteristic(LinkTestService.sink),
      let peripheral = connection.peripheral
    else { return }
    // As long as one request takes it: a longer value would be prepared part by part.
    let limit = min(peripheral.maximumWriteValueLength(for: .withoutResponse), 512)
    awaited = min(limit, octets - done)
    peripheral.writeValue(LinkTestService.pattern.prefix(awaited), for: sink, type: .withResponse)
  }

  private func goThere(_ way: LinkTest.RoundTrip) {
    sentAt = clock.now
    awaited = LinkTest.roundTripOctets
    let octets = LinkTestService.pattern.prefix(awaited)
    switch way {
    case .values:
      guard let echo = characteristic(LinkTestService.echo) else { return }
      connection.peripheral?.writeValue(octets, for: echo, type: .withoutResponse)
    case .response:
      guard let sink = characteristic(LinkTestService.sink) else { return }
      connection.peripheral?.writeValue(octets, for: sink, type: .withResponse)
    case .channel: send(octets)
    }
  }

  private func cameBack(_ count: Int) {
    guard case .roundTrips(let way, let total) = kind else { return }
    awaited -= count
    guard awaited <= 0 else { return }
    roundTrips.append(clock.now - sentAt)
    arrived(1, of: total, then: .receipts)
    if phase == .testing { goThere(way) }
  }

  private func send(_ octets: Data) {
    unwritten += octets
    flush()
  }

  private func flush() {
    while !unwritten.isEmpty, let count = port?.write(unwritten), count > 0 {
      unwritten = Data(unwritten.dropFirst(count))
    }
  }

  // MARK: From the device

  func connectionTold(_ event: PeripheralEvent) {
    switch event {
    case .written(_, let error), .notifying(_, let error), .value(_, let error):
      if let error {
        return fail(.unsupportedDevice, "the device has refused: \(error.localizedDescription)")
      }
    case .channel(_, let error):
      if let error {
        return fail(.unsupportedDevice, "it refused the channel: \(error.localizedDescription)")
      }
    default: break
    }
    switch event {
    case .written: written()
    case .notifying(let characteristic, _): if phase == .preparing, characteristic.isNotifying { settle() }
    case .value(let characteristic, _): received(characteristic)
    case .channel(let channel, _): opened(channel)
    default: break
    }
  }

  private func written() {
    if phase == .preparing { return settle() }
    guard phase == .testing else { return }
    switch kind {
    case .writes(let octets):
      arrived(awaited, of: octets, then: .receipts)
      if phase == .testing { writeNext() }
    case .roundTrips(.response, _): cameBack(awaited)
    default: break
    }
  }

  private func received(_ characteristic: CBCharacteristic) {
    let value = characteristic.value ?? Data()
    if characteristic.uuid == LinkTestService.psm, phase == .preparing {
      guard value.count == 2 else {
        return fail(
          .unsupportedDevice, "the device's PSM for link tests has \(value.count) bytes instead of 2")
      }
      let psm = value.reversed().reduce(UInt16(0)) { $0 << 8 | UInt16($1) }
      connection.peripheral?.openL2CAPChannel(psm)
      return
    }
    guard phase == .testing else { return }
    switch kind {
    case .notifications(let octets): arrived(value.count, of: octets, then: .carrier)
    case .roundTrips(.values, _): cameBack(value.count)
    default: break
    }
  }

  private func opened(_ channel: CBL2CAPChannel?) {
    guard phase == .preparing, let channel else { return }
    port = ChannelPort(channel, queue: queue) { [weak self] event in self?.handle(event) }
    if port == nil { return fail(.unsupportedDevice, "the channel has no streams") }
    settle()
  }

  private func handle(_ event: ChannelPort.Event) {
    switch event {
    case .writable: flush()
    case .readable:
      while phase != .ended, let bytes = port?.read(), !bytes.isEmpty {
        guard phase == .testing else { continue }
        switch kind {
        case .channel(let octets): arrived(bytes.count, of: octets, then: .carrier)
        case .roundTrips: cameBack(bytes.count)
        default: break
        }
      }
    case .ended(let why): fail(.disconnected, "the channel was lost while it was tested: \(why)")
    }
  }
}
