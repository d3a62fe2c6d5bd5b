import BulkTransfer
import CoreBluetooth
import Foundation

// Follows a heart-rate sensor for as long as the program runs, in and out of reach.
enum HeartRate {
  static let service = CBUUID(string: "180D")
  static let measurement = CBUUID(string: "2A37")
}

var configuration = ConnectionConfiguration()
configuration.findLimit = nil
configuration.fruitlessAttempts = nil

let connection = DeviceConnection(
  to: .any, services: [ServiceRequirement(HeartRate.service, characteristics: [HeartRate.measurement])],
  advertisedServices: [HeartRate.service], configuration: configuration,
  memory: KnownDevices(directory: "state")
) { event in
  if case .value(let characteristic, nil) = event, let value = characteristic.value {
    print("measured:", [UInt8](value))
  }
}

let states = connection.states()
try await connection.connect()
for await state in states {
  print(state)
  guard case .ready = state else { continue }
  // Each link begins without subscriptions.
  try? await connection.withPeripheral { peripheral in
    let service = peripheral.services?.first { $0.uuid == HeartRate.service }
    let characteristic = service?.characteristics?.first { $0.uuid == HeartRate.measurement }
    if let characteristic { peripheral.setNotifyValue(true, for: characteristic) }
  }
}
