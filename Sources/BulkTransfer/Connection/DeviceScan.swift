public import CoreBluetooth
internal import Dispatch
internal import Foundation

/// A scan that tells each device once, and again where its name or services become known later, as a scan response may bring them.
public struct DeviceScan: Sendable {
  private let services: [String]
  private let managerOptions: [String: any Sendable]
  private let clock: any TransferClock

  /// Prepares a scan.
  ///
  /// - Parameters:
  ///   - services: only devices that advertise one of them; empty: all devices.
  ///   - managerOptions: options for the `CBCentralManager`.
  ///   - clock: the scan's time runs on it.
  public init(
    services: [CBUUID] = [], managerOptions: [String: any Sendable] = [:],
    clock: any TransferClock = SystemClock()
  ) {
    self.services = services.map(\.uuidString)
    self.managerOptions = managerOptions
    self.clock = clock
  }

  /// How many sightings wait for somebody who does not read: as many as a manager holds for a program whose queue is busy.
  public static let mostUnread = 4096

  /// The devices in reach until `time` has passed, or until nobody listens any more.
  ///
  /// Memory is bounded whatever advertises: of a scan that comes across more than 4096 devices, as where one changes its address for ever, devices may be
  /// told as new more than once. While ``mostUnread`` sightings wait to be read, further ones are left out, and told of if the device shows
  /// again with something new.
  ///
  /// - Parameter onOmission: called once, before the stream ends, with how many sightings were left out, if any were.
  /// - Throws: `radioUnavailable` where the adapter cannot be used.
  public func sightings(
    for time: Duration, onOmission: @escaping @Sendable (_ count: Int) -> Void = { _ in }
  ) -> AsyncThrowingStream<DeviceSighting, any Error> {
    AsyncThrowingStream(bufferingPolicy: .bufferingOldest(Self.mostUnread)) { continuation in
      let scanner = Scanner(services: services, continuation: continuation, onOmission: onOmission)
      // Time begins once the manager is there: simulated time would pass it by.
      clock.async(on: scanner.queue) { [managerOptions, clock] in
        scanner.start(managerOptions)
        let timer = clock.schedule(after: time) { clock.async(on: scanner.queue) { scanner.finish() } }
        continuation.onTermination = { _ in
          timer.cancel()
          clock.async(on: scanner.queue) { scanner.stop() }
        }
      }
    }
  }
}

/// Listens for advertisements, on a queue of its own.
// Sendable: what changes is used on `queue` only.
private final class Scanner: NSObject, CBCentralManagerDelegate, @unchecked Sendable {
  let queue = DispatchQueue(label: "BulkTransfer.scan")
  private let services: [String]
  private let continuation: AsyncThrowingStream<DeviceSighting, any Error>.Continuation
  private let onOmission: @Sendable (Int) -> Void
  private var manager: CBCentralManager?
  private var log = SightingLog()
  private var omitted = 0
  private var hasScanned = false

  init(
    services: [String], continuation: AsyncThrowingStream<DeviceSighting, any Error>.Continuation,
    onOmission: @escaping @Sendable (Int) -> Void
  ) {
    self.services = services
    self.continuation = continuation
    self.onOmission = onOmission
  }

  func start(_ options: [String: any Sendable]) {
    var options: [String: Any] = options
    options[CBCentralManagerOptionShowPowerAlertKey] = false
    manager = CBCentralManager(delegate: self, queue: queue, options: options)
  }

  /// Ends the stream: with an error, or because the time is over.
  func finish(throwing error: TransferError? = nil) {
    if omitted > 0 { onOmission(omitted) }
    omitted = 0
    continuation.finish(throwing: error)
  }

  func stop() {
    manager.poweredOn?.stopScan()
    manager = nil
  }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    if central.state == .poweredOn {
      hasScanned = true
      return central.scanForPeripherals(
        withServices: services.isEmpty ? nil : services.map { CBUUID(string: $0) }, options: nil)
    }
    guard let why = central.state.unusable, why.lasts else { return }
    // An adapter that was there may come back, as it does where its daemon is restarted; the scan's time is limited all the same.
    if hasScanned, !why.isFinal { return }
    finish(
      throwing: TransferError(
        .radioUnavailable, why.words, advice: "switch it on, or choose another", remedy: .chooseRadio))
  }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) {
    guard let sighting = log.take(DeviceSighting(peripheral, advertisementData, RSSI)) else { return }
    guard case .dropped = continuation.yield(sighting) else { return }
    log.takeBack()
    omitted += 1
  }
}

extension DeviceSighting {
  init(_ peripheral: CBPeripheral, _ advertisementData: [String: Any], _ rssi: NSNumber) {
    let services = advertisementData[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] ?? []
    self.init(
      identifier: peripheral.identifier,
      advertisedName: advertisementData[CBAdvertisementDataLocalNameKey] as? String,
      knownName: peripheral.name, rssi: rssi.intValue == 127 ? nil : rssi.intValue,
      services: services.map(\.uuidString))
  }
}

extension Optional where Wrapped: CBManager {
  /// The manager while it takes commands; in every other state a command is a mistake, and is dropped.
  var poweredOn: Wrapped? { flatMap { $0.state == .poweredOn ? $0 : nil } }
}

extension CBManagerState {
  /// Why an adapter in this state cannot be used, whether somebody has to change that, and whether this program can wait for it; nil: it can
  /// be used.
  var unusable: (words: String, lasts: Bool, isFinal: Bool)? {
    switch self {
    case .poweredOn: nil
    case .unsupported: ("there is no Bluetooth adapter that can be used", true, true)
    case .unauthorized: ("this program is not permitted to use Bluetooth", true, true)
    case .poweredOff: ("Bluetooth is switched off", true, false)
    default: ("Bluetooth is not ready", false, false)
    }
  }
}
