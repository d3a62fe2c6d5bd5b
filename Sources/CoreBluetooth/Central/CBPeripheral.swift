internal import Locking
public import Foundation
internal import Radio

/// A remote device in the peripheral role, as one central manager sees it.
///
/// There is one object per device and manager for as long as the program, or a link, holds it. A pending connection ends when the program releases the
/// object.
// Sendable: what changes is in `session` and in the core, both behind locks.
open class CBPeripheral: CBPeer, @unchecked Sendable {
  let core: CentralCore
  /// The upper half of this object's request numbers, which tells them from those of other peripherals.
  let ordinal: UInt32
  let session: PosixMutex<PeripheralSession>

  init(_cb peer: PeerID, name: String?, ordinal: UInt32, core: CentralCore) {
    self.core = core
    self.ordinal = ordinal
    session = PosixMutex(PeripheralSession(knownName: name))
    super.init(_cb: peer)
  }

  deinit { core.inbox.post(.released(peer)) }

  /// Told what happens to the peripheral, on the queue of its manager.
  open var delegate: (any CBPeripheralDelegate)? {
    get { session.withLock { $0.delegate }.object }
    set {
      let reference = PeripheralDelegateReference(object: newValue)
      session.withLock { $0.delegate = reference }
    }
  }

  /// The GAP device name once it is known, else the advertised name.
  open var name: String? { session.withLock { $0.name } }

  /// Signal strength as last read.
  @available(*, deprecated, message: "Use peripheral(_:didReadRSSI:error:) instead")
  open var rssi: NSNumber? { session.withLock { $0.rssi }.map { NSNumber(value: $0) } }

  /// The connection as the manager sees it.
  open var state: CBPeripheralState { core.connectionState(of: self) }

  /// Discovered services in the order of their discovery; nil before, and after the link has ended.
  ///
  /// They stay while a lost link is made again by itself (``CBConnectPeripheralOptionEnableAutoReconnect``), and over the new link as far as the
  /// device still has them.
  open var services: [CBService]? {
    session.withLock { ($0.link?.database ?? $0.remembered)?.services }
  }

  /// Whether a write without response would be taken now.
  ///
  /// After it was false, ``CBPeripheralDelegate/peripheralIsReady(toSendWriteWithoutResponse:)`` is called once when room is back. It starts as true.
  open var canSendWriteWithoutResponse: Bool {
    session.withLock { $0.openClient }?.canWriteWithoutResponse(to: peer) ?? false
  }

  /// Always false: there is no Apple Notification Center Service.
  open var ancsAuthorized: Bool { false }

  /// The longest value that one write takes: 512 with response, else what fits a packet of the link (ATT MTU - 3, at most 512).
  ///
  /// Ask each time: the ATT MTU changes after connecting. Without a link it is that of the smallest ATT MTU.
  open func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
    switch type {
    case .withResponse: return ATT.maximumValueLength
    case .withoutResponse:
      let mtu = session.withLock { $0.openClient }?.attMTU(of: peer) ?? ATT.minimumMTU
      return ATT.payload(ofMTU: mtu)
    }
  }

  // MARK: Commands

  /// Asks for the signal strength of the link.
  open func readRSSI() { ask(.readRSSI, .readRSSI, command: "readRSSI") }

  /// Discovers primary services of the given types; nil: all.
  open func discoverServices(_ serviceUUIDs: [CBUUID]?) {
    ask(.discoverServices, .discoverServices(Self.filter(serviceUUIDs)), command: "discoverServices")
  }

  /// Discovers the services that `service` includes.
  open func discoverIncludedServices(_ includedServiceUUIDs: [CBUUID]?, for service: CBService) {
    guard let remote = remote(service.remote, "discoverIncludedServices") else { return }
    ask(
      .discoverIncludedServices(service),
      .discoverIncludedServices(of: remote, Self.filter(includedServiceUUIDs)), of: service,
      command: "discoverIncludedServices")
  }

  /// Discovers the characteristics of `service`.
  open func discoverCharacteristics(_ characteristicUUIDs: [CBUUID]?, for service: CBService) {
    guard let remote = remote(service.remote, "discoverCharacteristics") else { return }
    ask(
      .discoverCharacteristics(service),
      .discoverCharacteristics(of: remote, Self.filter(characteristicUUIDs)), of: service,
      command: "discoverCharacteristics")
  }

  /// Discovers the descriptors of `characteristic`.
  open func discoverDescriptors(for characteristic: CBCharacteristic) {
    guard let remote = remote(characteristic.remote, "discoverDescriptors") else { return }
    ask(
      .discoverDescriptors(characteristic), .discoverDescriptors(of: remote), of: characteristic,
      command: "discoverDescriptors")
  }

  /// Reads the whole value of `characteristic`.
  open func readValue(for characteristic: CBCharacteristic) {
    guard let remote = remote(characteristic.remote, "readValue") else { return }
    ask(.read(characteristic), .read(remote.handle), of: characteristic, command: "readValue")
  }

  /// Reads the whole value of `descriptor`.
  open func readValue(for descriptor: CBDescriptor) {
    guard let remote = remote(descriptor.remote, "readValue") else { return }
    ask(.readDescriptor(descriptor), .read(remote.handle), of: descriptor, command: "readValue")
  }

  /// Writes `data` to `characteristic`.
  ///
  /// With response: up to 512 octets, each write answered by one
  /// ``CBPeripheralDelegate/peripheral(_:didWriteValueFor:error:)-(_,CBCharacteristic,_)``. Without response: up to ``maximumWriteValueLength(for:)``,
  /// while ``canSendWriteWithoutResponse`` is true; what is longer, or comes while it is false, is dropped.
  open func writeValue(
    _ data: Data, for characteristic: CBCharacteristic, type: CBCharacteristicWriteType
  ) {
    guard let remote = remote(characteristic.remote, "writeValue") else { return }
    switch type {
    case .withResponse:
      let tooLong = data.count > ATT.maximumValueLength
      ask(
        .write(characteristic), .write(remote.handle, data), of: characteristic,
        failure: tooLong ? .invalidAttributeValueLength : nil, command: "writeValue")
    case .withoutResponse:
      send(data, to: characteristic, remote)
    }
  }

  /// Writes `data` to `descriptor`; a client configuration is written by ``setNotifyValue(_:for:)`` only.
  open func writeValue(_ data: Data, for descriptor: CBDescriptor) {
    guard let remote = remote(descriptor.remote, "writeValue") else { return }
    guard remote.uuid != BluetoothUUID(0x2902 as UInt16) else {
      core.log.misuse(
        self, "writes a client characteristic configuration in setNotifyValue only; writeValue was dropped")
      return
    }
    let tooLong = data.count > ATT.maximumValueLength
    ask(
      .writeDescriptor(descriptor), .write(remote.handle, data), of: descriptor,
      failure: tooLong ? .invalidAttributeValueLength : nil, command: "writeValue")
  }

  /// Subscribes to `characteristic` or unsubscribes; notifications are preferred to indications. It lasts as long as the link.
  open func setNotifyValue(_ enabled: Bool, for characteristic: CBCharacteristic) {
    guard let remote = remote(characteristic.remote, "setNotifyValue") else { return }
    let best: NotifyMode? =
      if remote.properties.contains(.notify) {
        .notify
      } else if remote.properties.contains(.indicate) {
        .indicate
      } else {
        nil
      }
    let mode = enabled ? best ?? .notify : .none
    ask(
      .setNotify(characteristic, mode), .setNotify(remote, mode), of: characteristic,
      failure: best == nil ? .requestNotSupported : nil, command: "setNotifyValue")
  }

  /// Opens an L2CAP channel to a PSM of the peer.
  open func openL2CAPChannel(_ PSM: CBL2CAPPSM) {
    let dropped = session.withLock { session -> Bool in
      guard let client = session.openClient,
        let number = session.link?.requests.append(.openChannel)
      else { return true }
      client.openChannel(psm: PSM, of: peer, id: requestID(number))
      return false
    }
    if dropped { logNotConnected("openL2CAPChannel") }
  }

  open override var description: String {
    "<CBPeripheral: identifier = \(identifier), name = \(name ?? "(none)"), state = \(state)>"
  }
}

/// Figures of the Attribute Protocol.
enum ATT {
  /// The longest value of an attribute (Core Vol 3 Part F 3.2.9).
  static let maximumValueLength = 512
  /// The ATT MTU that every LE link starts with (Core Vol 3 Part G 5.2.1).
  static let minimumMTU = 23

  /// What a Write Command or a notification carries: opcode and handle cost 3 octets.
  static func payload(ofMTU mtu: Int) -> Int { min(max(mtu, minimumMTU) - 3, maximumValueLength) }
}

/// A weak reference to a delegate.
///
/// Sendable though delegates are not: a delegate is called on its manager's queue only, and programs that set it elsewhere do what Apple's API lets
/// them do.
struct PeripheralDelegateReference: @unchecked Sendable {
  weak var object: (any CBPeripheralDelegate)?
}
