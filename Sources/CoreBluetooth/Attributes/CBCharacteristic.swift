internal import Locking
public import Foundation
internal import Radio

/// A characteristic of a peer, or a local one in a ``CBMutableCharacteristic``.
open class CBCharacteristic: CBAttribute, @unchecked Sendable {
  struct Contents {
    weak var service: CBService?
    var properties: CBCharacteristicProperties
    var permissions: CBAttributePermissions = []
    var value: Data?
    var descriptors: [CBDescriptor]?
    var isNotifying = false
    var subscribedCentrals: [CBCentral] = []
  }

  let contents: PosixMutex<Contents>
  let remote: RemoteCharacteristic?

  /// A characteristic that was discovered.
  init(_cb remote: RemoteCharacteristic, of service: CBService, link: LinkToken) {
    let properties = CBCharacteristicProperties(rawValue: UInt(remote.properties.rawValue))
    contents = PosixMutex(Contents(service: service, properties: properties))
    self.remote = remote
    super.init(_cb: CBUUID(remote.uuid), link: link)
  }

  /// A local characteristic.
  init(
    _cb type: CBUUID, properties: CBCharacteristicProperties, value: Data?,
    permissions: CBAttributePermissions
  ) {
    contents = PosixMutex(Contents(properties: properties, permissions: permissions, value: value))
    remote = nil
    super.init(_cb: type, link: nil)
  }

  /// The service that it belongs to.
  open var service: CBService? { contents.withLock { $0.service } }

  /// What it can do.
  open var properties: CBCharacteristicProperties { contents.withLock { $0.properties } }

  /// What was last read or notified; a write does not change it.
  open var value: Data? { contents.withLock { $0.value } }

  /// Its descriptors, as far as discovered; nil before.
  open var descriptors: [CBDescriptor]? { contents.withLock { $0.descriptors } }

  /// Whether the peer notifies or indicates it to this client.
  open var isNotifying: Bool { contents.withLock { $0.isNotifying } }

  /// Always false: values are not broadcast.
  @available(*, deprecated, message: "Broadcasting of values is not supported")
  open var isBroadcasted: Bool { false }

  override func invalidate() {
    super.invalidate()
    for descriptor in descriptors ?? [] { descriptor.invalidate() }
    contents.withLock { $0.isNotifying = false }
  }
}

/// A characteristic to publish. Changes after ``CBPeripheralManager/add(_:)`` have no effect.
open class CBMutableCharacteristic: CBCharacteristic, @unchecked Sendable {
  /// Makes a characteristic.
  ///
  /// - Parameter value: Where not nil, the value is fixed and is served without asking the delegate; the characteristic must then be read-only.
  public init(
    type UUID: CBUUID, properties: CBCharacteristicProperties, value: Data?,
    permissions: CBAttributePermissions
  ) {
    super.init(_cb: UUID, properties: properties, value: value, permissions: permissions)
  }

  /// Who may access the value.
  open var permissions: CBAttributePermissions {
    get { contents.withLock { $0.permissions } }
    set { contents.withLock { $0.permissions = newValue } }
  }

  /// The centrals that are subscribed now.
  open var subscribedCentrals: [CBCentral]? { contents.withLock { $0.subscribedCentrals } }

  open override var properties: CBCharacteristicProperties {
    get { super.properties }
    set { contents.withLock { $0.properties = newValue } }
  }

  open override var value: Data? {
    get { super.value }
    set { contents.withLock { $0.value = newValue } }
  }

  open override var descriptors: [CBDescriptor]? {
    get { super.descriptors }
    set {
      contents.withLock { $0.descriptors = newValue }
      for descriptor in newValue ?? [] { descriptor.contents.withLock { $0.characteristic = self } }
    }
  }
}
