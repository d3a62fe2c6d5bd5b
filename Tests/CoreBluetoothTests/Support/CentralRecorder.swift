import CoreBluetooth
import Foundation
import Locking
import Synchronization
import Radio

/// Lines in the order in which they were written, from any thread.
final class Lines: Sendable {
  private let lines = PosixMutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }
  func append(_ line: String) { lines.withLock { $0.append(line) } }

  func take() -> [String] {
    lines.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }

  var handler: CBLogHandler { CBLogHandler { [self] in append($0) } }
}

/// Watches how callbacks are made: one at a time, none inside another, on the queue.
final class CallWatch: Sendable {
  private let depth = Atomic<Int>(0)
  private let overlapped = Atomic<Bool>(false)
  private let strayed = Atomic<Bool>(false)

  var isClean: Bool { !overlapped.load(ordering: .acquiring) && !strayed.load(ordering: .acquiring) }

  func during(_ body: () -> Void) {
    if depth.add(1, ordering: .acquiringAndReleasing).oldValue != 0 {
      overlapped.store(true, ordering: .releasing)
    }
    if !TestQueue.isCurrent { strayed.store(true, ordering: .releasing) }
    body()
    depth.subtract(1, ordering: .acquiringAndReleasing)
  }
}

/// Writes down every callback of the central role, and runs what a test wants done in it.
final class CentralRecorder: NSObject, @unchecked Sendable {
  let lines = Lines()
  let watch = CallWatch()
  private let held = PosixMutex<[CBPeripheral]>([])
  private struct Manager {
    weak var object: CBCentralManager?
  }
  private let last = PosixMutex(Manager())
  private let channels = PosixMutex<[CBL2CAPChannel]>([])
  private let reaction = PosixMutex(Reaction())

  /// Holds a closure: one that is a generic value itself is wrapped anew each time that it is read in place.
  private struct Reaction: Sendable {
    var run: (@Sendable (String) -> Void)?
  }

  private let holds: Bool

  /// - Parameter holds: whether discovered peripherals are held, as a program should.
  init(holds: Bool = true) { self.holds = holds }

  var peripherals: [CBPeripheral] { held.withLock { $0 } }
  /// The manager of the last change of state.
  var manager: CBCentralManager? { last.withLock { $0.object } }
  var openChannels: [CBL2CAPChannel] { channels.withLock { $0 } }
  func letGo() {
    held.withLock { $0 = [] }
    channels.withLock { $0 = [] }
  }

  /// Runs inside each callback.
  func react(_ reaction: (@Sendable (String) -> Void)?) { self.reaction.withLock { $0.run = reaction } }

  private func note(_ line: String) {
    watch.during {
      lines.append(line)
      reaction.withLock { $0.run }?(line)
    }
  }

  private func text(_ error: (any Error)?) -> String {
    guard let error = error as NSError? else { return "" }
    return " \(error.domain == CBErrorDomain ? "link" : "att") error \(error.code)"
  }

  private func hex(_ value: Data?) -> String {
    value.map { $0.map { String($0) }.joined(separator: ",") } ?? "nil"
  }
}

extension CentralRecorder: CBCentralManagerDelegate {
  func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
    last.withLock { $0.object = central }
    let peripherals = dict[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral]
    for peripheral in peripherals ?? [] {
      peripheral.delegate = self
      if holds { held.withLock { $0.append(peripheral) } }
    }
    let services = dict[CBCentralManagerRestoredStateScanServicesKey] as? [CBUUID]
    let options = dict[CBCentralManagerRestoredStateScanOptionsKey] as? [String: Any]
    let words = [
      peripherals.map { "peripherals \($0.map { "\($0.name ?? "nil") \($0.state)" })" },
      services.map { "scan \($0.map(\.uuidString))" }, options.map { "options \($0.keys.sorted())" },
    ]
    note((["restored"] + words.compactMap { $0 }).joined(separator: " "))
  }

  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    last.withLock { $0.object = central }
    note("state \(central.state)")
  }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) {
    if holds { held.withLock { list in if !list.contains(peripheral) { list.append(peripheral) } } }
    note("discovered \(peripheral.name ?? "nil") \(RSSI)")
  }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    note("connected, \(peripheral.state)")
  }

  func centralManager(
    _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
  ) {
    note("failed, \(peripheral.state)\(text(error))")
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    note("disconnected, \(peripheral.state)\(text(error))")
  }

  func centralManager(
    _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent,
    for peripheral: CBPeripheral
  ) {
    if holds { held.withLock { list in if !list.contains(peripheral) { list.append(peripheral) } } }
    note("\(event) \(peripheral.name ?? "nil"), \(peripheral.state)")
  }
}

extension CentralRecorder: CBPeripheralDelegate {
  func peripheralDidUpdateName(_ peripheral: CBPeripheral) { note("name \(peripheral.name ?? "nil")") }

  func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
    note("modified \(invalidatedServices.map(\.uuid.uuidString))")
  }

  func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: (any Error)?) {
    note("rssi \(RSSI)\(text(error))")
  }

  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    note("services \(peripheral.services?.map(\.uuid.uuidString) ?? [])\(text(error))")
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?
  ) {
    note("included \(service.includedServices?.map(\.uuid.uuidString) ?? [])\(text(error))")
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) {
    note("characteristics \(service.characteristics?.map(\.uuid.uuidString) ?? [])\(text(error))")
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) {
    note("descriptors \(characteristic.descriptors?.map(\.uuid.uuidString) ?? [])\(text(error))")
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    note("value \(hex(characteristic.value))\(text(error))")
  }

  func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    note("wrote \(characteristic.uuid)\(text(error))")
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) {
    note("notifying \(characteristic.isNotifying)\(text(error))")
  }

  func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?)
  {
    note("descriptor \(descriptor.value ?? "nil")\(text(error))")
  }

  func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?)
  {
    note("wrote descriptor \(descriptor.uuid)\(text(error))")
  }

  func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { note("ready") }

  func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
    if let channel { channels.withLock { $0.append(channel) } }
    note("channel \(channel.map { String($0.psm) } ?? "nil")\(text(error))")
  }
}
