internal import Foundation
internal import Radio

/// What changes in a ``CBPeripheral``.
struct PeripheralSession: Sendable {
  /// A request that waits for its answer.
  enum Request: Sendable {
    case discoverServices
    case discoverIncludedServices(CBService)
    case discoverCharacteristics(CBService)
    case discoverDescriptors(CBCharacteristic)
    case read(CBCharacteristic)
    case readDescriptor(CBDescriptor)
    case write(CBCharacteristic)
    case writeDescriptor(CBDescriptor)
    case setNotify(CBCharacteristic, NotifyMode)
    case readRSSI
    case openChannel
    /// Asked by the manager, to compare what is known with what the peer has.
    case check
    /// Asked by the manager, to have a subscription of a former run again.
    case resubscribe(CBCharacteristic)
  }

  /// What exists while there is a link.
  struct Link: Sendable {
    let client: any CentralRadio
    var database = RemoteDatabase()
    var requests = RequestQueue<Request>()
    /// False once the program has asked to disconnect: what was asked before may still be answered.
    var takesCommands = true
    /// Whether the log was told that a write without response was lost, since room was last there.
    var hasToldLoss = false
    /// Not nil until what is known from the link before was compared with what the peer has: the program does not know of the link yet.
    var check: DatabaseCheck?
    /// What has turned out to be no longer valid meanwhile.
    var modified: [CBService] = []
  }

  var delegate = PeripheralDelegateReference()
  /// The GAP device name.
  var deviceName: String?
  var advertisedName: String?
  /// dBm.
  var rssi: Int?
  var link: Link?
  /// The number of the first request of the next link. Numbers go on from link to link: where one adapter's link serves other
  /// managers too, it outlives this manager's use of it, and so may an answer to what was asked before.
  private(set) var nextRequest: UInt32 = 0
  /// The attributes of the link before, while the manager makes the next one by itself.
  var remembered: RemoteDatabase?
  /// What notified in a former run, until the first link of this one.
  var resubscriptions: [CBCharacteristic] = []

  init(knownName: String?) { advertisedName = knownName }

  var name: String? { deviceName ?? advertisedName }

  /// Takes the link out, if there is one.
  mutating func takeLink() -> Link? {
    guard let link else { return nil }
    nextRequest = link.requests.next
    self.link = nil
    return link
  }

  /// The radio, if there is a link that takes commands.
  var openClient: (any CentralRadio)? { link?.takesCommands == true ? link?.client : nil }
}
