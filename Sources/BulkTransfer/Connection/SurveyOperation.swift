internal import CoreBluetooth
internal import Dispatch
internal import Foundation
internal import Locking

/// Connects to a device, discovers all that it has, reads what can be read, and lets it go.
public struct SurveyOperation: Sendable {
  private let target: DeviceTarget
  private let stepLimit: Duration
  private let memory: KnownDevices?
  private let managerOptions: [String: any Sendable]
  private let clock: any TransferClock

  /// Prepares a survey.
  ///
  /// - Parameters:
  ///   - stepLimit: how long each step, such as an answer of the device, may take.
  ///   - memory: where devices are remembered.
  ///   - managerOptions: options for the `CBCentralManager`.
  ///   - clock: limits run on it.
  public init(
    of target: DeviceTarget, stepLimit: Duration = .seconds(10), memory: KnownDevices? = nil,
    managerOptions: [String: any Sendable] = [:], clock: any TransferClock = SystemClock()
  ) {
    self.target = target
    self.stepLimit = stepLimit
    self.memory = memory
    self.managerOptions = managerOptions
    self.clock = clock
  }

  /// Runs it once.
  ///
  /// - Throws: what ``DeviceConnection/connect()`` throws; `disconnected` where the link is lost meanwhile; `timedOut` where an answer does not
  ///   come.
  public func run() async throws(TransferError) -> DeviceSurvey {
    var configuration = ConnectionConfiguration()
    configuration.limitSteps(to: stepLimit)
    configuration.reconnects = false
    let relay = Relay()
    let connection = DeviceConnection(
      to: target, configuration: configuration, memory: memory, managerOptions: managerOptions,
      clock: clock
    ) { relay.driver?.take($0) }
    let identifier = try await connection.connect()
    let driver = SurveyDriver(
      identifier, stepLimit: stepLimit, clock: clock, queue: connection.queue)
    relay.driver = driver
    let watch = Task { [driver] in
      for await state in connection.states() where !state.isUsable { driver.linkEnded() }
    }
    let outcome: Result<DeviceSurvey, TransferError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        driver.begin({ continuation.resume(returning: $0) }) { start in
          do { try await connection.withPeripheral(start) } catch { driver.linkEnded() }
        }
      }
    } onCancel: {
      driver.cancel()
    }
    watch.cancel()
    await connection.disconnect()
    return try outcome.get()
  }

  /// The driver is made once the device is known, after the connection.
  // Sendable: behind a lock.
  private final class Relay: Sendable {
    private let state = PosixMutex<SurveyDriver?>(nil)
    var driver: SurveyDriver? {
      get { state.withLock { $0 } }
      set { state.withLock { $0 = newValue } }
    }
  }
}

/// Asks a peripheral for everything, level by level, and counts the answers that are outstanding.
// Sendable: what changes is used on `queue` only.
final class SurveyDriver: @unchecked Sendable {
  typealias Outcome = Result<DeviceSurvey, TransferError>

  /// Attributes of which a device has more are not asked for: a table holds 65535 handles.
  private static let most = 4096

  private let queue: DispatchQueue
  private let clock: any TransferClock
  private let stepLimit: Duration
  private let identifier: UUID
  private var peripheral: CBPeripheral?
  private var outstanding = 0
  private var asked = 0
  private var failures: [ObjectIdentifier: String] = [:]
  /// Takes the outcome; nil before the survey begins and after it has ended.
  private var finish: (@Sendable (Outcome) -> Void)?
  /// What the survey has come to, which may be so before it begins: its task was cancelled, or the link is gone.
  private var outcome: Outcome?
  private var timer: QueueTimer?
  private var due = Duration.zero

  init(_ identifier: UUID, stepLimit: Duration, clock: any TransferClock, queue: DispatchQueue) {
    self.identifier = identifier
    self.stepLimit = stepLimit
    self.clock = clock
    self.queue = queue
    timer = QueueTimer(clock: clock, queue: queue) { [weak self] in self?.timePassed() }
  }

  /// Begins, once.
  ///
  /// - Parameters:
  ///   - finish: called once, on the queue.
  ///   - use: runs a block with the peripheral on the queue.
  func begin(
    _ finish: @escaping @Sendable (Outcome) -> Void,
    _ use: @escaping @Sendable (@escaping @Sendable (CBPeripheral) -> Void) async -> Void
  ) {
    clock.async(on: queue) {
      if let outcome = self.outcome { return finish(outcome) }
      self.finish = finish
    }
    clock.beginActivity()
    Task {
      await use { self.start($0) }
      clock.endActivity()
    }
  }

  func cancel() {
    clock.async(on: queue) { self.end(.failure(TransferError(.cancelled, "the survey was cancelled"))) }
  }

  func linkEnded() {
    clock.async(on: queue) {
      self.end(
        .failure(
          TransferError(.disconnected, "the link was lost while the device was looked at", isRetriable: true))
      )
    }
  }

  private func start(_ peripheral: CBPeripheral) {
    self.peripheral = peripheral
    ask { peripheral.discoverServices(nil) }
  }

  /// What the connection's peripheral tells, on the queue.
  func take(_ event: PeripheralEvent) {
    guard let peripheral else { return }
    switch event {
    case .services(let error):
      if let error { return end(.failure(.unanswered(error))) }
      for service in peripheral.services ?? [] {
        ask { peripheral.discoverIncludedServices(nil, for: service) }
        ask { peripheral.discoverCharacteristics(nil, for: service) }
      }
      answered()
    case .includedServices: answered()
    case .characteristics(let service, _):
      for characteristic in service.characteristics ?? [] {
        ask { peripheral.discoverDescriptors(for: characteristic) }
        if characteristic.properties.contains(.read) { ask { peripheral.readValue(for: characteristic) } }
      }
      answered()
    case .descriptors: answered()
    case .value(let characteristic, let error):
      if let error { failures[ObjectIdentifier(characteristic)] = error.localizedDescription }
      answered()
    default: break
    }
  }

  private func ask(_ request: () -> Void) {
    guard finish != nil, asked < Self.most else { return }
    asked += 1
    outstanding += 1
    due = clock.now + stepLimit
    timer?.set(to: due)
    request()
  }

  private func answered() {
    outstanding -= 1
    due = clock.now + stepLimit
    if outstanding <= 0, let peripheral { end(.success(survey(peripheral))) }
  }

  private func timePassed() {
    guard finish != nil else { return }
    guard clock.now >= due else { return timer?.set(to: due) ?? () }
    end(
      .failure(
        TransferError(.timedOut, "the device has not answered within \(stepLimit)", isRetriable: true)))
  }

  private func end(_ outcome: Outcome) {
    guard self.outcome == nil else { return }
    self.outcome = outcome
    timer?.cancel()
    finish?(outcome)
    finish = nil
  }

  private func survey(_ peripheral: CBPeripheral) -> DeviceSurvey {
    var survey = DeviceSurvey(
      identifier: identifier, name: peripheral.name,
      longestWriteWithoutResponse: peripheral.maximumWriteValueLength(for: .withoutResponse))
    survey.services = (peripheral.services ?? []).map { service in
      DeviceSurvey.Service(
        uuid: service.uuid.uuidString, isPrimary: service.isPrimary,
        included: (service.includedServices ?? []).map(\.uuid.uuidString),
        characteristics: (service.characteristics ?? []).map(survey(_:)))
    }
    return survey
  }

  private func survey(_ characteristic: CBCharacteristic) -> DeviceSurvey.Characteristic {
    DeviceSurvey.Characteristic(
      uuid: characteristic.uuid.uuidString, properties: characteristic.properties.words,
      value: characteristic.value, failure: failures[ObjectIdentifier(characteristic)],
      descriptors: (characteristic.descriptors ?? []).map(\.uuid.uuidString))
  }
}

extension CBCharacteristicProperties {
  /// The names of the bits that are set.
  fileprivate var words: [String] {
    let names: [(CBCharacteristicProperties, String)] = [
      (.broadcast, "broadcast"), (.read, "read"), (.writeWithoutResponse, "write-without-response"),
      (.write, "write"), (.notify, "notify"), (.indicate, "indicate"),
      (.authenticatedSignedWrites, "signed-write"), (.extendedProperties, "extended"),
    ]
    return names.compactMap { contains($0) ? $1 : nil }
  }
}

extension TransferError {
  fileprivate static func unanswered(_ error: any Error) -> TransferError {
    TransferError(
      .disconnected, "the device does not tell its services: \(error.localizedDescription)", isRetriable: true
    )
  }
}
