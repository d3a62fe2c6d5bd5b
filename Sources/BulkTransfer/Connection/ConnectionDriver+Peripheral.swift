internal import CoreBluetooth
internal import Foundation

/// The steps of discovery are the connection's own; everything else is passed on.
extension ConnectionDriver: CBPeripheralDelegate {
  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
    guard case .discoveringServices = state else {
      client?.connectionTold(.services(error))
      return
    }
    awaitedDiscoveries -= 1
    guard awaitedDiscoveries <= 0 else { return }
    if let error { return handle(.drop(error.localizedDescription)) }
    handle(.servicesDiscovered(setup.services.map(\.service).filter { service($0) != nil }))
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
  ) {
    let requirement = setup.services.first { CBUUID(string: $0.service) == service.uuid }
    guard case .discoveringCharacteristics = state, let requirement else {
      client?.connectionTold(.characteristics(service, error))
      return
    }
    if let error { return handle(.drop(error.localizedDescription)) }
    let found = service.characteristics ?? []
    let present = requirement.characteristics.filter { wanted in
      let wanted = CBUUID(string: wanted)
      return found.contains { $0.uuid == wanted }
    }
    handle(.characteristicsDiscovered(service: requirement.service, present))
  }

  func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
    client?.connectionTold(.modifiedServices(invalidatedServices))
    let modified = setup.services.map(\.service).filter { wanted in
      let wanted = CBUUID(string: wanted)
      return invalidatedServices.contains { $0.uuid == wanted }
    }
    if !modified.isEmpty { handle(.servicesModified(modified)) }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    client?.connectionTold(.value(characteristic, error))
  }

  func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
  ) {
    client?.connectionTold(.written(characteristic, error))
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) {
    client?.connectionTold(.notifying(characteristic, error))
  }

  func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) {
    client?.connectionTold(.readyToWrite)
  }

  func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
    client?.connectionTold(.channel(channel, error))
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?
  ) {
    client?.connectionTold(.includedServices(service, error))
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic,
    error: (any Error)?
  ) {
    client?.connectionTold(.descriptors(characteristic, error))
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?
  ) {
    client?.connectionTold(.descriptorValue(descriptor, error))
  }

  func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?
  ) {
    client?.connectionTold(.descriptorWritten(descriptor, error))
  }

  func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: (any Error)?) {
    client?.connectionTold(.rssi(RSSI.intValue, error))
  }

  func peripheralDidUpdateName(_ peripheral: CBPeripheral) {
    client?.connectionTold(.name(peripheral.name))
  }
}
