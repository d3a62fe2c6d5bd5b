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
