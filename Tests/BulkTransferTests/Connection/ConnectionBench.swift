import BulkTransfer
import CoreBluetooth
import Foundation

/// Identifiers and requirements for tests of connections.
enum Sample {
  static let one = UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
  static let two = UUID(uuid: (2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2))
  static let service = ServiceRequirement(
    CBUUID(string: "180D"), name: "the heart rate service", characteristics: [CBUUID(string: "2A37")],
    optional: [CBUUID(string: "2A38")])

  static func sighting(_ identifier: UUID, _ name: String? = "bench-1", rssi: Int? = -50) -> DeviceSighting {
    DeviceSighting(identifier: identifier, advertisedName: name, rssi: rssi)
  }
}

extension ConnectionMachine {
  /// Makes a machine whose connection is wanted and whose adapter can be used.
  static func searching(
    _ target: DeviceTarget = .identifier(Sample.one), services: [ServiceRequirement] = [],
    memory: UUID? = nil,
    change: (inout ConnectionConfiguration) -> Void = { _ in }
  ) -> ConnectionMachine {
    var configuration = ConnectionConfiguration()
    change(&configuration)
    var machine = ConnectionMachine(
      target: target, services: services, configuration: configuration, memory: memory)
    _ = machine.handle(.connect, now: .zero)
    _ = machine.handle(.radioReady, now: .zero)
    return machine
  }

  /// Makes one with a link that is ready, to ``Sample/one``.
  static func ready(
    services: [ServiceRequirement] = [], change: (inout ConnectionConfiguration) -> Void = { _ in }
  ) -> ConnectionMachine {
    var machine = searching(services: services, change: change)
    _ = machine.handle(.known([Sample.sighting(Sample.one)]), now: .zero)
    machine.bringUp(now: .zero)
    return machine
  }

  /// Answers a connection request with everything that is required.
  mutating func bringUp(now: Duration) {
    _ = handle(.connected(name: nil), now: now)
    guard !isReady else { return }
    _ = handle(.servicesDiscovered([Sample.service.service]), now: now)
    _ = handle(
      .characteristicsDiscovered(service: Sample.service.service, Sample.service.characteristics), now: now)
  }

  var isReady: Bool { if case .ready = state { true } else { false } }

  var error: TransferError? { if case .failed(let error) = state { error } else { nil } }
}
