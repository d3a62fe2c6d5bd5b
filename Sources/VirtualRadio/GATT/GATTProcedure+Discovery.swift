internal import Foundation
internal import Radio

// Every discovery goes up in handles. An answer that does not is refused: else a peer could keep a client busy for ever.

/// Primary services, all or those of some types (Core Vol 3 Part G 4.4).
struct ServiceDiscovery: GATTProcedure {
  private let filter: [BluetoothUUID]?
  /// Types still to be looked for one by one; nil: read all and filter.
  private var wanted: [BluetoothUUID]?
  private var next: AttributeHandle = 1
  private var found: [RemoteService] = []

  /// Up to this many types are looked for one by one; beyond, reading all services takes fewer packets.
  private static let singleSearchLimit = 2

  init(filter: [BluetoothUUID]?) {
    self.filter = filter
    if let filter, filter.count <= Self.singleSearchLimit { wanted = filter }
  }

  mutating func start(_ link: GATTLinkState) -> GATTStep { request() }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep {
    var last: AttributeHandle = 0
    switch response {
    case .readByGroupTypeResponse(let entries):
      for entry in entries {
        guard let handles = entry.handles.closed, handles.lowerBound >= next, handles.lowerBound > last,
          let uuid = BluetoothUUID(littleEndian: entry.value)
        else { return .nonsense("services") }
        found.append(RemoteService(handles: handles, uuid: uuid, isPrimary: true))
        last = handles.upperBound
      }
    case .findByTypeValueResponse(let ranges):
      guard let uuid = wanted?.first else { return .nonsense("services") }
      for range in ranges {
        guard let handles = range.closed, handles.lowerBound >= next, handles.lowerBound > last else {
          return .nonsense("services")
        }
        found.append(RemoteService(handles: handles, uuid: uuid, isPrimary: true))
        last = handles.upperBound
      }
    default: return .nonsense("services")
    }
    guard last < .max else { return endOfList() }
    next = last + 1
    return request()
  }

  mutating func handle(_ error: ATTErrorCode, _ link: GATTLinkState) -> GATTStep {
    error == .attributeNotFound ? endOfList() : .failed(.att(error))
  }

  private mutating func endOfList() -> GATTStep {
    wanted?.removeFirst()
    next = 1
    guard let wanted, !wanted.isEmpty else { return finish() }
    return request()
  }

  private func request() -> GATTStep {
    let range = ATTPDU.HandleRange(next, .max)
    guard let wanted else { return .request(.readByGroupTypeRequest(range, GATTType.primaryService)) }
    guard let uuid = wanted.first else { return finish() }
    return .request(.findByTypeValueRequest(range, type: 0x2800, value: Data(uuid.littleEndianBytes)))
  }

  private func finish() -> GATTStep {
    let matching = found.filter { filter?.contains($0.uuid) ?? true }
    return .done(.services(matching.sorted { $0.handles.lowerBound < $1.handles.lowerBound }))
  }
}

/// Services that a service includes (Core Vol 3 Part G 4.5.1).
struct IncludedServiceDiscovery: GATTProcedure {
  private struct Included {
    var handles: ClosedRange<AttributeHandle>
    var uuid: BluetoothUUID?
    var isPrimary: Bool?
  }

  private let service: RemoteService
  private let filter: [BluetoothUUID]?
  private var next: AttributeHandle
  private var included: [Included] = []
  private var isListComplete = false

  init(of service: RemoteService, filter: [BluetoothUUID]?) {
    self.service = service
    self.filter = filter
    next = service.handles.lowerBound
  }

  mutating func start(_ link: GATTLinkState) -> GATTStep { request() }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep {
    switch response {
    case .readByTypeResponse(let entries):
      for entry in entries {
        var reader = ByteReader(Array(entry.value))
        guard entry.handle >= next, service.handles.contains(entry.handle),
          let start = reader.readUInt16(), let end = reader.readUInt16(),
          let handles = ATTPDU.HandleRange(start, end).closed
        else { return .nonsense("included services") }
        included.append(
          Included(handles: handles, uuid: BluetoothUUID(littleEndian: reader.readRest()), isPrimary: nil))
        guard entry.handle < service.handles.upperBound else {
          isListComplete = true
          return request()
        }
        next = entry.handle + 1
      }
    case .readResponse(let value):
      // A 128-bit type does not fit the include declaration: it is read from the service itself.
      guard let index = included.firstIndex(where: { $0.uuid == nil }),
        let uuid = BluetoothUUID(littleEndian: value)
      else { return .nonsense("included service") }
      included[index].uuid = uuid
    case .findInformationResponse(let entries):
      guard let index = included.firstIndex(where: { $0.isPrimary == nil }), let first = entries.first else {
        return .nonsense("included service")
      }
      included[index].isPrimary = first.uuid != GATTType.secondaryService
    default: return .nonsense("included services")
    }
    return request()
  }

  mutating func handle(_ error: ATTErrorCode, _ link: GATTLinkState) -> GATTStep {
    guard !isListComplete, error == .attributeNotFound else { return .failed(.att(error)) }
    isListComplete = true
    return request()
  }

  private func request() -> GATTStep {
    guard isListComplete else {
      return .request(
        .readByTypeRequest(ATTPDU.HandleRange(next, service.handles.upperBound), GATTType.include))
    }
    if let long = included.first(where: { $0.uuid == nil }) {
      return .request(.readRequest(long.handles.lowerBound))
    }
    if let open = included.first(where: { $0.isPrimary == nil }) {
      let handle = open.handles.lowerBound
      return .request(.findInformationRequest(ATTPDU.HandleRange(handle, handle)))
    }
    let services = included.compactMap { entry in
      entry.uuid.map {
        RemoteService(handles: entry.handles, uuid: $0, isPrimary: entry.isPrimary ?? true)
      }
    }
    return .done(.services(services.filter { filter?.contains($0.uuid) ?? true }))
  }
}

/// Characteristics of a service (Core Vol 3 Part G 4.6.1).
struct CharacteristicDiscovery: GATTProcedure {
  private let service: RemoteService
  private let filter: [BluetoothUUID]?
  private var next: AttributeHandle
  private var found: [RemoteCharacteristic] = []

  init(of service: RemoteService, filter: [BluetoothUUID]?) {
    self.service = service
    self.filter = filter
    next = service.handles.lowerBound
  }

  mutating func start(_ link: GATTLinkState) -> GATTStep { request() }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep {
    guard case .readByTypeResponse(let entries) = response else { return .nonsense("characteristics") }
    for entry in entries {
      var reader = ByteReader(Array(entry.value))
      guard entry.handle >= next, service.handles.contains(entry.handle),
        let properties = reader.readUInt8(), let handle = reader.readUInt16(),
        let uuid = BluetoothUUID(littleEndian: reader.readRest()), service.handles.contains(handle),
        handle > entry.handle
      else { return .nonsense("characteristics") }
      endLast(at: entry.handle - 1)
      found.append(
        RemoteCharacteristic(
          handle: handle, endHandle: service.handles.upperBound, uuid: uuid,
          properties: GATTProperties(rawValue: properties)))
      guard entry.handle < service.handles.upperBound else { return finish() }
      next = entry.handle + 1
    }
    return request()
  }

  mutating func handle(_ error: ATTErrorCode, _ link: GATTLinkState) -> GATTStep {
    error == .attributeNotFound ? finish() : .failed(.att(error))
  }

  /// A characteristic goes up to where the next one is declared.
  private mutating func endLast(at handle: AttributeHandle) {
    guard let last = found.last else { return }
    found[found.count - 1].endHandle = max(handle, last.handle)
  }

  private func request() -> GATTStep {
    .request(
      .readByTypeRequest(ATTPDU.HandleRange(next, service.handles.upperBound), GATTType.characteristic))
  }

  private func finish() -> GATTStep {
    .done(.characteristics(found.filter { filter?.contains($0.uuid) ?? true }))
  }
}

/// Descriptors of a characteristic (Core Vol 3 Part G 4.7.1).
struct DescriptorDiscovery: GATTProcedure {
  private(set) var found: [RemoteDescriptor] = []
  private let end: AttributeHandle
  private var next: Int

  init(of characteristic: RemoteCharacteristic) {
    next = Int(characteristic.handle) + 1
    end = characteristic.endHandle
  }

  mutating func start(_ link: GATTLinkState) -> GATTStep { request() }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep {
    guard case .findInformationResponse(let entries) = response else { return .nonsense("descriptors") }
    for entry in entries {
      guard Int(entry.handle) >= next, entry.handle <= end else { return .nonsense("descriptors") }
      found.append(entry)
      next = Int(entry.handle) + 1
    }
    return request()
  }

  mutating func handle(_ error: ATTErrorCode, _ link: GATTLinkState) -> GATTStep {
    error == .attributeNotFound ? .done(.descriptors(found)) : .failed(.att(error))
  }

  private func request() -> GATTStep {
    guard next <= Int(end) else { return .done(.descriptors(found)) }
    return .request(
      .findInformationRequest(ATTPDU.HandleRange(AttributeHandle(truncatingIfNeeded: next), end)))
  }
}
