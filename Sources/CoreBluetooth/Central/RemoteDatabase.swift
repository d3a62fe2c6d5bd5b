internal import Locking
internal import Foundation
internal import Radio

/// The attributes of a peer as far as they were discovered over one link, each as one object for as long as the link lasts, and
/// over the next one where the manager makes that by itself.
struct RemoteDatabase: Sendable {
  let link = LinkToken()
  /// Primary services in the order of their discovery; nil before the first discovery.
  private(set) var services: [CBService]?
  /// All services, included ones too.
  private var all: [RemoteService: CBService] = [:]
  private var characteristics: [AttributeHandle: CBCharacteristic] = [:]
  private var descriptors: [AttributeHandle: CBDescriptor] = [:]

  /// The characteristic whose value has that handle.
  func characteristic(_ handle: AttributeHandle) -> CBCharacteristic? { characteristics[handle] }

  /// Takes the reply to a discovery of services; those of the peer's host are left out, as on Apple's platforms and with BlueZ.
  mutating func discovered(_ found: [RemoteService], of peripheral: CBPeripheral) {
    var list = services ?? []
    for remote in found where !remote.uuid.isServiceOfTheHost {
      let service = object(for: remote, of: peripheral)
      if !list.contains(where: { $0 === service }) { list.append(service) }
    }
    services = list
  }

  /// Takes the reply to a discovery of included services.
  mutating func discovered(
    _ found: [RemoteService], includedBy service: CBService, of peripheral: CBPeripheral
  ) {
    let objects = found.map { object(for: $0, of: peripheral) }
    service.contents.withLock { contents in
      let known = contents.includedServices ?? []
      contents.includedServices = known + objects.filter { new in !known.contains { $0 === new } }
    }
  }

  /// Takes the reply to a discovery of characteristics.
  mutating func discovered(_ found: [RemoteCharacteristic], of service: CBService) {
    let objects = found.map { remote in
      if let known = characteristics[remote.handle], known.remote == remote, known.service === service {
        return known
      }
      let object = CBCharacteristic(_cb: remote, of: service, link: link)
      characteristics[remote.handle] = object
      return object
    }
    service.contents.withLock { contents in
      let known = contents.characteristics ?? []
      contents.characteristics = known + objects.filter { new in !known.contains { $0 === new } }
    }
  }

  /// Takes the reply to a discovery of descriptors.
  mutating func discovered(_ found: [RemoteDescriptor], of characteristic: CBCharacteristic) {
    let objects = found.map { remote in
      if let known = descriptors[remote.handle], known.remote == remote,
        known.characteristic === characteristic
      {
        return known
      }
      let object = CBDescriptor(_cb: remote, of: characteristic, link: link)
      descriptors[remote.handle] = object
      return object
    }
    characteristic.contents.withLock { $0.descriptors = objects }
  }

  /// Forgets what lies in handle ranges that are no longer valid, and returns the services that were in ``services``.
  mutating func invalidate(_ ranges: [ClosedRange<AttributeHandle>]) -> [CBService] {
    let gone = all.filter { remote, _ in ranges.contains { $0.overlaps(remote.handles) } }
    for (remote, service) in gone {
      all[remote] = nil
      service.invalidate()
    }
    for range in ranges {
      characteristics = characteristics.filter { !range.contains($0.key) }
      descriptors = descriptors.filter { !range.contains($0.key) }
    }
    let lost = (services ?? []).filter { service in gone.values.contains { $0 === service } }
    services = services?.filter { service in !lost.contains { $0 === service } }
    return lost
  }

  /// What is known, service by service in order of handles, for a comparison with the peer's database.
  var known: [DatabaseCheck.Known] {
    all.sorted { $0.key.handles.lowerBound < $1.key.handles.lowerBound }.map { remote, service in
      var known = DatabaseCheck.Known(service: remote)
      known.included = (service.includedServices ?? []).compactMap(\.remote)
      for characteristic in service.characteristics ?? [] {
        guard let remote = characteristic.remote else { continue }
        known.characteristics.append(remote)
        known.descriptors.append((remote, (characteristic.descriptors ?? []).compactMap(\.remote)))
      }
      return known
    }
  }

  /// Outlives the link: attributes stay, but none notifies any more.
  func pause() {
    for characteristic in characteristics.values {
      characteristic.contents.withLock { $0.isNotifying = false }
    }
  }

  /// Lets go of everything at the end of the link: no attribute notifies any more, and services hold each other no longer.
  func end() {
    for service in all.values { service.dropIncludedServices() }
    pause()
  }

  private mutating func object(for remote: RemoteService, of peripheral: CBPeripheral) -> CBService {
    if let known = all[remote] { return known }
    let object = CBService(_cb: remote, of: peripheral, link: link)
    all[remote] = object
    return object
  }
}
