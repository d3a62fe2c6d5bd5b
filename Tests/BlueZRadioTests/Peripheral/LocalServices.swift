import Foundation
import Radio

extension LocalCharacteristic {
  /// One for tests, with as little as it takes.
  static func plain(
    _ id: UInt64, _ properties: GATTProperties = .read, _ permissions: GATTPermissions = [.read, .write],
    isProtected: Bool = false, value: Data? = nil, descriptors: [LocalDescriptor] = []
  ) -> LocalCharacteristic {
    LocalCharacteristic(
      id: LocalCharacteristicID(id), uuid: BluetoothUUID(UInt16(0xC000) + UInt16(id % 0x1000)),
      properties: properties, permissions: permissions, notifyRequiresEncryption: isProtected,
      staticValue: value, descriptors: descriptors)
  }
}

extension LocalService {
  static func plain(
    _ id: UInt64, _ characteristics: [LocalCharacteristic] = [], includes: [LocalServiceID] = []
  ) -> LocalService {
    LocalService(
      id: LocalServiceID(id), uuid: BluetoothUUID(UInt16(0xD000) + UInt16(id % 0x1000)),
      isPrimary: true, includedServices: includes, characteristics: characteristics)
  }
}
