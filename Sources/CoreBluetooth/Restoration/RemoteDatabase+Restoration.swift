internal import Foundation
internal import Locking
internal import Radio

/// What was discovered of a peer, on its way to the disk and back.
extension RemoteDatabase {
  /// What is known, for a file; nil: nothing was discovered.
  var saved: [SavedCentral.Service]? {
    guard let services else { return nil }
    var all = services
    var positions: [ObjectIdentifier: Int] = [:]
    for (index, service) in services.enumerated() { positions[ObjectIdentifier(service)] = index }
    var next = 0
    while next < all.count {
      for included in all[next].includedServices ?? [] where positions[ObjectIdentifier(included)] == nil {
        positions[ObjectIdentifier(included)] = all.count
        all.append(included)
      }
      next += 1
    }
    return all.enumerated().compactMap { index, service in
      guard let remote = service.remote else { return nil }
      return SavedCentral.Service(
        uuid: SavedUUID(remote.uuid), handles: [remote.handles.lowerBound, remote.handles.upperBound],
        isPrimary: remote.isPrimary, isListed: index < services.count,
        included: service.includedServices?.compactMap { positions[ObjectIdentifier($0)] },
        characteristics: service.characteristics?.compactMap { characteristic in
          characteristic.remote.map { SavedCentral.Characteristic(characteristic, $0) }
        })
    }
  }

  /// Makes objects of what a file knows of `peripheral`; they are compared with what it has before they are used on a link.
  init(restoring saved: [SavedCentral.Service], of peripheral: CBPeripheral) {
    self.init()
    let remotes = saved.map(\.remote)
    var records: [RemoteService: SavedCentral.Service] = [:]
    for (remote, record) in zip(remotes, saved) {
      if let remote, records[remote] == nil { records[remote] = record }
    }
    discovered(zip(remotes, saved).filter { $0.1.isListed }.compactMap(\.0), of: peripheral)
    var waiting = services ?? []
    while let service = waiting.popLast() {
      // Each once: services may include each other.
      guard let record = service.remote.flatMap({ records.removeValue(forKey: $0) }) else { continue }
      if let included = record.included {
        let found = included.compactMap { remotes.indices.contains($0) ? remotes[$0] : nil }
        discovered(found, includedBy: service, of: peripheral)
        waiting += service.includedServices ?? []
      }
      if let characteristics = record.characteristics { restore(characteristics, of: service) }
    }
  }

  private mutating func restore(_ saved: [SavedCentral.Characteristic], of service: CBService) {
    discovered(saved.map(\.remote), of: service)
    for (characteristic, saved) in zip(service.characteristics ?? [], saved) {
      if let descriptors = saved.descriptors {
        discovered(
          descriptors.map { RemoteDescriptor(handle: $0.handle, uuid: $0.uuid.value) }, of: characteristic)
      }
      characteristic.contents.withLock { $0.isNotifying = saved.isNotifying }
    }
  }

  /// What notifies.
  var notifying: [CBCharacteristic] {
    var seen: Set<ObjectIdentifier> = []
    var waiting = services ?? []
    var result: [CBCharacteristic] = []
    while let service = waiting.popLast() {
      guard seen.insert(ObjectIdentifier(service)).inserted else { continue }
      result += (service.characteristics ?? []).filter(\.isNotifying)
      waiting += service.includedServices ?? []
    }
    return result
  }
}
