internal import Locking
internal import Foundation
internal import Radio

/// A service of a peer, or a local one in a ``CBMutableService``.
open class CBService: CBAttribute, @unchecked Sendable {
  struct Contents {
    weak var peripheral: CBPeripheral?
    var includedServices: [CBService]?
    var characteristics: [CBCharacteristic]?
  }

  let contents: PosixMutex<Contents>
  let remote: RemoteService?
  private let primary: Bool

  /// A service that was discovered.
  init(_cb remote: RemoteService, of peripheral: CBPeripheral, link: LinkToken) {
    contents = PosixMutex(Contents(peripheral: peripheral))
    self.remote = remote
    primary = remote.isPrimary
    super.init(_cb: CBUUID(remote.uuid), link: link)
  }

  /// A local service.
  init(_cb type: CBUUID, primary: Bool) {
    contents = PosixMutex(Contents())
    remote = nil
    self.primary = primary
    super.init(_cb: type, link: nil)
  }

  /// The device whose service it is.
  open var peripheral: CBPeripheral? { contents.withLock { $0.peripheral } }

  /// Primary or secondary.
  open var isPrimary: Bool { primary }

  /// Services that this one includes, as far as discovered; nil before.
  open var includedServices: [CBService]? { contents.withLock { $0.includedServices } }

  /// Its characteristics, as far as discovered; nil before.
  open var characteristics: [CBCharacteristic]? { contents.withLock { $0.characteristics } }

  override func invalidate() {
    super.invalidate()
    for characteristic in characteristics ?? [] { characteristic.invalidate() }
    dropIncludedServices()
  }

  /// Breaks the cycles that a peer's services may form by including each other.
  func dropIncludedServices() { contents.withLock { $0.includedServices = nil } }
}

/// A service to publish. Changes after ``CBPeripheralManager/add(_:)`` have no effect.
open class CBMutableService: CBService, @unchecked Sendable {
  /// Makes a service without characteristics.
  public init(type UUID: CBUUID, primary isPrimary: Bool) {
    super.init(_cb: UUID, primary: isPrimary)
  }

  /// Services to include; each must have been added before.
  open override var includedServices: [CBService]? {
    get { super.includedServices }
    set { contents.withLock { $0.includedServices = newValue } }
  }

  /// The characteristics.
  open override var characteristics: [CBCharacteristic]? {
    get { super.characteristics }
    set {
      contents.withLock { $0.characteristics = newValue }
      for characteristic in newValue ?? [] { characteristic.contents.withLock { $0.service = self } }
    }
  }
}

extension BluetoothUUID {
  /// Generic Access and Generic Attribute: every host has these services and keeps them to itself.
  var isServiceOfTheHost: Bool { short == 0x1800 || short == 0x1801 }
}
