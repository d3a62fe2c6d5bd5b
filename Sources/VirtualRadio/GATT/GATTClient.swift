internal import Foundation
internal import Radio

/// The client half of one bearer (Core Vol 3 Parts F and G). Sans-I/O: requests and packets in, packets and ``Output`` out.
///
/// Requests are served first in, first out, with one ATT transaction at a time (Core Vol 3 Part F 3.3.2). What the client wants
/// to know for itself waits until no request of a caller does: the device name comes first. What takes several requests, Service Changed, waits until no
/// caller has asked for anything for a while: callers ask for one thing after another, and a request of the host in between costs them two connection events.
struct GATTClient {
  /// What the client wants done.
  enum Output {
    case send(ATTPDU)
    case completed(ClientRequest, Result<GATTReply, GATTFailure>)
    case notified(AttributeHandle, Data)
    case servicesChanged([ClosedRange<AttributeHandle>])
    case deviceName(String)
    case mtuAgreed(Int)
    /// The peer broke a rule, or was silent too long: the bearer cannot go on.
    case terminate(RadioError)
  }

  /// A transaction that is not answered within this time ends the bearer (Core Vol 3 Part F 3.3.3).
  static let transactionTimeout = Duration.seconds(30)

  /// How long no caller has asked for anything before the host subscribes to Service Changed.
  static let quietTime = Duration.milliseconds(100)

  private enum Purpose {
    case caller(ClientRequest)
    case exchangeMTU
    case deviceName
    case attributeService
    case serviceChanged
    case serviceChangedConfiguration
    /// Nobody waits for the end.
    case none
  }

  private struct Job {
    var purpose: Purpose
    var procedure: any GATTProcedure
    /// The value handle whose configuration descriptor will be known at the end.
    var configures: AttributeHandle?
  }

  private struct Transaction {
    var job: Job
    var opcode: UInt8
    var deadline: Duration
  }

  var outputs: [Output] = []
  var link: GATTLinkState
  private var waiting: [Job] = []
  private var ownWaiting: [Job] = []
  /// What waits for quiet, and until when at least.
  private var quietWaiting: [Job] = []
  private var quietAt: Duration = .zero
  private var transaction: Transaction?
  private var configurationHandles: [AttributeHandle: AttributeHandle] = [:]
  private var serviceChangedHandle: AttributeHandle?

  /// Makes the client of a link with the default MTU.
  init(rssi: Int) { link = GATTLinkState(mtu: ATTLimits.defaultMTU, rssi: rssi) }

  /// When ``timeElapsed(now:)`` is due: the pending transaction is given up, or it has been quiet for long enough.
  var deadline: Duration? { transaction?.deadline ?? (quietWaiting.isEmpty ? nil : quietAt) }

  // MARK: Commands

  /// Queues a request.
  mutating func request(_ request: GATTRequest, _ id: ClientRequest, now: Duration) {
    waiting.append(job(for: request, .caller(id)))
    startNext(now)
  }

  /// Writes a client configuration for which nobody waits.
  mutating func configure(_ characteristic: RemoteCharacteristic, _ mode: NotifyMode, now: Duration) {
    waiting.append(job(for: .setNotify(characteristic, mode), .none))
    startNext(now)
  }

  /// Queues an Exchange MTU before everything that waits.
  mutating func exchangeMTU(preferred: Int, now: Duration) {
    waiting.insert(Job(purpose: .exchangeMTU, procedure: MTUExchange(preferred: preferred)), at: 0)
    startNext(now)
  }

  /// Learns the device name when there is nothing else to do, and subscribes to Service Changed once no caller has asked for anything for ``quietTime``.
  mutating func learnPeer(now: Duration) {
    quietAt = now + Self.quietTime
    ownWaiting.append(Job(purpose: .deviceName, procedure: ValueReadByType(type: GATTType.deviceName)))
    quietWaiting.append(
      Job(
        purpose: .attributeService, procedure: ServiceDiscovery(filter: [GATTType.attributeService])))
    startNext(now)
  }

  /// Ends the bearer where a transaction was not answered in time; goes on with what has waited for quiet.
  mutating func timeElapsed(now: Duration) {
    guard let transaction else { return startNext(now) }
    guard transaction.deadline <= now else { return }
    outputs.append(.terminate(RadioError(.timeout, "the peer did not answer an ATT request in 30 s")))
  }

  // MARK: Packets

  /// Handles a response, notification or indication. Anything else is not for the client.
  mutating func handle(_ pdu: ATTPDU, now: Duration) {
    switch pdu {
    case .notification(let handle, let value): outputs.append(.notified(handle, value))
    case .indication(let handle, let value):
      outputs.append(.send(.confirmation))
      if handle == serviceChangedHandle {
        handleServiceChanged(value)
      } else {
        outputs.append(.notified(handle, value))
      }
    case .errorResponse(let opcode, _, let code):
      resume(pdu, answers: opcode, now: now) { $0.handle(code, $1) }
    default: resume(pdu, answers: pdu.opcode &- 1, now: now) { $0.handle(pdu, $1) }
    }
  }

  /// Handles a packet that could not be read: the request that it answers has failed.
  mutating func handleUnreadable(opcode: UInt8, now: Duration) {
    guard let transaction, transaction.opcode == opcode &- 1 || opcode == ATTOpcode.errorResponse else {
      return
    }
    self.transaction = nil
    take(.nonsense("response 0x\(String(opcode, radix: 16)) is malformed"), of: transaction.job, now: now)
    startNext(now)
  }

  private mutating func resume(
    _ pdu: ATTPDU, answers opcode: UInt8, now: Duration,
    _ step: (inout any GATTProcedure, GATTLinkState) -> GATTStep
  ) {
    // Nothing was asked: a stray response harms nobody.
    guard var current = transaction else { return }
    guard current.opcode == opcode else {
      let words = "the peer answered request 0x\(String(current.opcode, radix: 16)) with something else"
      outputs.append(.terminate(RadioError(.other, words)))
      return
    }
    transaction = nil
    let next = step(&current.job.procedure, link)
    take(next, of: current.job, now: now)
    startNext(now)
  }

  private mutating func handleServiceChanged(_ value: Data) {
    var reader = ByteReader(Array(value))
    guard let start = reader.readUInt16(), let end = reader.readUInt16(),
      let range = ATTPDU.HandleRange(start, end).closed
    else { return }
    configurationHandles = configurationHandles.filter {
      !range.contains($0.key) && !range.contains($0.value)
    }
    outputs.append(.servicesChanged([range]))
  }

  // MARK: The queue

  private func job(for request: GATTRequest, _ purpose: Purpose) -> Job {
    switch request {
    case .discoverServices(let filter): Job(purpose: purpose, procedure: ServiceDiscovery(filter: filter))
    case .discoverIncludedServices(let service, let filter):
      Job(purpose: purpose, procedure: IncludedServiceDiscovery(of: service, filter: filter))
    case .discoverCharacteristics(let service, let filter):
      Job(purpose: purpose, procedure: CharacteristicDiscovery(of: service, filter: filter))
    case .discoverDescriptors(let characteristic):
      Job(purpose: purpose, procedure: DescriptorDiscovery(of: characteristic))
    case .read(let handle): Job(purpose: purpose, procedure: ValueRead(handle: handle))
    case .write(let handle, let value):
      Job(purpose: purpose, procedure: ValueWrite(handle: handle, value: value))
    case .setNotify(let characteristic, let mode):
      Job(
        purpose: purpose,
        procedure: Configuration(
          characteristic: characteristic, mode: mode,
          descriptor: configurationHandles[characteristic.handle]),
        configures: characteristic.handle)
    case .readRSSI: Job(purpose: purpose, procedure: SignalStrengthRead())
    }
  }

  private mutating func startNext(_ now: Duration) {
    while transaction == nil {
      var job: Job
      if !waiting.isEmpty {
        job = waiting.removeFirst()
      } else if !ownWaiting.isEmpty {
        job = ownWaiting.removeFirst()
      } else if !quietWaiting.isEmpty, now >= quietAt {
        job = quietWaiting.removeFirst()
      } else {
        return
      }
      let step = job.procedure.start(link)
      take(step, of: job, now: now)
    }
  }

  /// Does what a procedure says.
  private mutating func take(_ step: GATTStep, of job: Job, now: Duration) {
    if case .caller = job.purpose { quietAt = now + Self.quietTime }
    switch step {
    case .request(let pdu):
      transaction = Transaction(job: job, opcode: pdu.opcode, deadline: now + Self.transactionTimeout)
      outputs.append(.send(pdu))
    case .mtuAgreed(let mtu):
      link.mtu = mtu
      outputs.append(.mtuAgreed(mtu))
    case .configured(let descriptor):
      if let handle = job.configures { configurationHandles[handle] = descriptor }
      finish(job.purpose, .success(.done))
    case .done(let reply): finish(job.purpose, .success(reply))
    case .failed(let failure): finish(job.purpose, .failure(failure))
    }
  }

  private mutating func finish(_ purpose: Purpose, _ result: Result<GATTReply, GATTFailure>) {
    switch (purpose, result) {
    case (.caller(let id), _): outputs.append(.completed(id, result))
    case (.deviceName, .success(.value(let value))):
      if let name = String(bytes: value, encoding: .utf8) { outputs.append(.deviceName(name)) }
    case (.attributeService, .success(.services(let services))):
      guard let service = services.first else { return }
      quietWaiting.append(
        Job(
          purpose: .serviceChanged,
          procedure: CharacteristicDiscovery(of: service, filter: [GATTType.serviceChanged])))
    case (.serviceChanged, .success(.characteristics(let characteristics))):
      guard let changed = characteristics.first else { return }
      serviceChangedHandle = changed.handle
      quietWaiting.append(job(for: .setNotify(changed, .indicate), .serviceChangedConfiguration))
    // A peer without these is a peer that cannot tell; the link is as good without.
    case (.exchangeMTU, _), (.deviceName, _), (.attributeService, _), (.serviceChanged, _),
      (.serviceChangedConfiguration, _), (.none, _):
      break
    }
  }
}
