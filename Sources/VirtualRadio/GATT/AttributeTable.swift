internal import Foundation
internal import Radio

/// The attributes that an adapter serves (Core Vol 3 Part G 2.6): its own two services and those of its clients.
///
/// A value: every link of the adapter holds a copy and is given a new one when services come or go. What belongs to one
/// link (client configurations, prepared writes) is not in here.
struct AttributeTable {
  /// One attribute.
  struct Attribute {
    var handle: AttributeHandle
    var type: BluetoothUUID
    var content: Content
  }

  enum Content {
    /// A value that anyone may read and nobody may write: declarations and descriptors.
    case fixed(Data)
    /// A characteristic's value.
    case value(Characteristic)
    /// The configuration of the characteristic whose value has this handle.
    case clientConfiguration(value: AttributeHandle)
  }

  /// What is needed to serve a characteristic's value.
  struct Characteristic {
    /// nil: the adapter's own.
    var owner: LocalAttribute?
    var properties: GATTProperties
    var permissions: GATTPermissions
    var notifyRequiresEncryption: Bool
    /// nil: ask the owner.
    var staticValue: Data?
  }

  /// A service and the handles it has.
  struct Service {
    /// nil: the adapter's own.
    var owner: Owner?
    var handles: ClosedRange<AttributeHandle>
    var uuid: BluetoothUUID
    var isPrimary: Bool
  }

  struct Owner: Hashable {
    var client: UInt64
    var id: LocalServiceID
  }

  /// In the order of handles.
  private(set) var attributes: [Attribute] = []
  private(set) var services: [Service] = []
  private(set) var serviceChangedHandle: AttributeHandle = 0
  private var valueHandles: [LocalAttribute: AttributeHandle] = [:]
  /// Handles are never given twice: a client with a stale cache must not reach another attribute.
  private var nextHandle = 1

  /// Makes the table of an adapter that calls itself `deviceName`.
  init(deviceName: String) {
    let readable = { (uuid: BluetoothUUID, value: Data) in
      Draft(
        uuid: uuid,
        value: Characteristic(
          owner: nil, properties: .read, permissions: .read, notifyRequiresEncryption: false,
          staticValue: value))
    }
    let name = Data(Data(deviceName.utf8).prefix(248))
    append(
      owner: nil, uuid: GATTType.accessService, isPrimary: true, included: [],
      [readable(GATTType.deviceName, name), readable(GATTType.appearance, Data([0, 0]))])
    let changed = Characteristic(
      owner: nil, properties: .indicate, permissions: [], notifyRequiresEncryption: false, staticValue: Data()
    )
    append(
      owner: nil, uuid: GATTType.attributeService, isPrimary: true, included: [],
      [Draft(uuid: GATTType.serviceChanged, value: changed)])
    serviceChangedHandle = attributes.last { $0.type == GATTType.serviceChanged }?.handle ?? 0
  }

  /// Adds a client's service and returns the handles it got.
  mutating func add(
    _ service: LocalService, client: UInt64
  ) throws(RadioError) -> ClosedRange<AttributeHandle> {
    let owner = Owner(client: client, id: service.id)
    guard service.uuid != GATTType.accessService, service.uuid != GATTType.attributeService else {
      throw RadioError(.uuidNotAllowed, "service \(service.uuid) belongs to the system")
    }
    guard !services.contains(where: { $0.owner == owner }) else {
      throw RadioError(.invalidParameters, "service \(service.uuid) is already published")
    }
    let ids = service.characteristics.map { LocalAttribute(client: client, id: $0.id) }
    guard Set(ids).count == ids.count, ids.allSatisfy({ valueHandles[$0] == nil }) else {
      throw RadioError(.invalidParameters, "a characteristic of service \(service.uuid) is already published")
    }
    var included: [Service] = []
    for id in service.includedServices {
      guard let match = services.first(where: { $0.owner == Owner(client: client, id: id) }) else {
        throw RadioError(.invalidParameters, "service \(service.uuid) includes one that is not published")
      }
      included.append(match)
    }
    let drafts = service.characteristics.map { Draft($0, client: client) }
    guard drafts.allSatisfy({ ($0.value.staticValue?.count ?? 0) <= ATTLimits.valueLength }) else {
      throw RadioError(.invalidParameters, "a value of service \(service.uuid) exceeds 512 octets")
    }
    let needed = 1 + included.count + drafts.reduce(0) { $0 + $1.attributeCount }
    guard nextHandle + needed <= 0xFFFF else {
      throw RadioError(.outOfSpace, "no attribute handles are left for service \(service.uuid)")
    }
    return append(
      owner: owner, uuid: service.uuid, isPrimary: service.isPrimary, included: included, drafts)
  }

  /// Removes a client's service and returns the handles it had; nil where there is none.
  mutating func remove(_ id: LocalServiceID, client: UInt64) -> ClosedRange<AttributeHandle>? {
    let owner = Owner(client: client, id: id)
    guard let index = services.firstIndex(where: { $0.owner == owner }) else { return nil }
    let handles = services.remove(at: index).handles
    attributes.removeAll { handles.contains($0.handle) }
    valueHandles = valueHandles.filter { !handles.contains($0.value) }
    return handles
  }

  /// The services of one client, in the order of handles.
  func serviceIDs(of client: UInt64) -> [LocalServiceID] {
    services.compactMap { $0.owner?.client == client ? $0.owner?.id : nil }
  }

  /// The value handle of a client's characteristic.
  func valueHandle(of attribute: LocalAttribute) -> AttributeHandle? { valueHandles[attribute] }

  /// The attribute with a handle.
  subscript(handle: AttributeHandle) -> Attribute? {
    let index = firstIndex(from: handle)
    return index < attributes.count && attributes[index].handle == handle ? attributes[index] : nil
  }

  /// The attributes in a range of handles.
  func attributes(in range: ClosedRange<AttributeHandle>) -> ArraySlice<Attribute> {
    let start = firstIndex(from: range.lowerBound)
    let end = range.upperBound == .max ? attributes.count : firstIndex(from: range.upperBound + 1)
    return attributes[start..<end]
  }

  /// The service that begins with a handle.
  func service(startingAt handle: AttributeHandle) -> Service? {
    services.first { $0.handles.lowerBound == handle }
  }

  private func firstIndex(from handle: AttributeHandle) -> Int {
    var low = 0
    var high = attributes.count
    while low < high {
      let middle = (low + high) / 2
      if attributes[middle].handle < handle { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

// MARK: - Building

extension AttributeTable {
  /// A characteristic before it has handles.
  private struct Draft {
    var uuid: BluetoothUUID
    var value: Characteristic
    var descriptors: [LocalDescriptor] = []

    init(uuid: BluetoothUUID, value: Characteristic) {
      self.uuid = uuid
      self.value = value
    }

    init(_ local: LocalCharacteristic, client: UInt64) {
      uuid = local.uuid
      value = Characteristic(
        owner: LocalAttribute(client: client, id: local.id), properties: local.properties,
        permissions: local.permissions, notifyRequiresEncryption: local.notifyRequiresEncryption,
        staticValue: local.staticValue)
      descriptors = local.descriptors.filter {
        $0.uuid != GATTType.clientConfiguration && $0.uuid != GATTType.extendedProperties
      }
    }

    var isConfigurable: Bool { !value.properties.isDisjoint(with: [.notify, .indicate]) }
    var isExtended: Bool { value.properties.contains(.extendedProperties) }
    var attributeCount: Int { 2 + (isConfigurable ? 1 : 0) + (isExtended ? 1 : 0) + descriptors.count }
  }

  @discardableResult
  private mutating func append(
    owner: Owner?, uuid: BluetoothUUID, isPrimary: Bool, included: [Service], _ drafts: [Draft]
  ) -> ClosedRange<AttributeHandle> {
    let first = append(
      isPrimary ? GATTType.primaryService : GATTType.secondaryService, .fixed(Data(uuid.littleEndianBytes)))
    for service in included {
      var bytes: [UInt8] = []
      bytes.appendUInt16(service.handles.lowerBound)
      bytes.appendUInt16(service.handles.upperBound)
      if service.uuid.short != nil { bytes.append(contentsOf: service.uuid.littleEndianBytes) }
      _ = append(GATTType.include, .fixed(Data(bytes)))
    }
    for draft in drafts { append(draft) }
    let handles = first...AttributeHandle(truncatingIfNeeded: nextHandle - 1)
    services.append(Service(owner: owner, handles: handles, uuid: uuid, isPrimary: isPrimary))
    return handles
  }

  private mutating func append(_ draft: Draft) {
    var declaration: [UInt8] = [draft.value.properties.rawValue]
    declaration.appendUInt16(AttributeHandle(truncatingIfNeeded: nextHandle + 1))
    declaration.append(contentsOf: draft.uuid.littleEndianBytes)
    _ = append(GATTType.characteristic, .fixed(Data(declaration)))
    let handle = append(draft.uuid, .value(draft.value))
    if let owner = draft.value.owner { valueHandles[owner] = handle }
    if draft.isExtended { _ = append(GATTType.extendedProperties, .fixed(Data([0, 0]))) }
    if draft.isConfigurable { _ = append(GATTType.clientConfiguration, .clientConfiguration(value: handle)) }
    for descriptor in draft.descriptors {
      _ = append(descriptor.uuid, .fixed(Data(descriptor.value.prefix(ATTLimits.valueLength))))
    }
  }

  private mutating func append(_ type: BluetoothUUID, _ content: Content) -> AttributeHandle {
    let handle = AttributeHandle(truncatingIfNeeded: nextHandle)
    attributes.append(Attribute(handle: handle, type: type, content: content))
    nextHandle += 1
    return handle
  }
}
