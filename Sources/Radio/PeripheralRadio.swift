public import Foundation

/// The peripheral role: advertises, is a GATT server and accepts L2CAP channels.
public protocol PeripheralRadio: AnyObject, Sendable {
  /// What the adapter can do right now.
  var adapterState: AdapterState { get }

  /// Publishes a service; the answer is ``PeripheralEvent/serviceAdded(_:_:)``.
  ///
  /// Included services must have been added before.
  func addService(_ service: LocalService)

  /// Withdraws a service; centrals that are linked are told by Service Changed. No event.
  func removeService(_ id: LocalServiceID)

  /// Withdraws all services of this client. No event.
  func removeAllServices()

  /// Starts advertising; the answer is ``PeripheralEvent/advertisingStarted(_:)``.
  func startAdvertising(_ advertisement: Advertisement)

  /// Stops advertising; idempotent, no event.
  func stopAdvertising()

  /// Answers a read: the value from the request's offset on (the radio cuts it to the ATT MTU), or an error.
  ///
  /// A second answer to the same request is ignored.
  func respond(toRead id: ServerRequestID, with result: Result<Data, ATTErrorCode>)

  /// Answers a batch of writes as one unit. For write commands nothing goes on the air.
  func respond(toWrites id: ServerRequestID, with result: Result<Void, ATTErrorCode>)

  /// Queues a notification (or indication) for all given subscribers, or for all there are.
  ///
  /// Returns false where not all of them have room: then none was queued, and exactly one ``PeripheralEvent/readyToNotify`` follows when there
  /// is room again. Values longer than a subscriber's ATT MTU - 3 are cut for it. Without subscribers: true.
  func notify(_ value: Data, of characteristic: LocalCharacteristicID, to centrals: [PeerID]?) -> Bool

  /// Accepts channels on a PSM that the radio chooses; the answer is ``PeripheralEvent/channelPublished(_:)``.
  func publishChannel(requiresEncryption: Bool)

  /// Stops accepting channels on a PSM and closes its open ones; the answer is ``PeripheralEvent/channelUnpublished(_:_:)``.
  func unpublishChannel(_ psm: PSM)

  /// The ATT MTU of the link to a central now, or nil without a link.
  func attMTU(of central: PeerID) -> Int?

  /// A wish for a shorter or longer connection interval.
  func requestLatency(_ latency: LinkLatency, for central: PeerID)
}

/// How prompt a link should be, at the cost of energy.
///
/// What interval each of them comes to is the radio's choice, and the central has the last word (Core Vol 3 Part A 4.20, Connection Parameter
/// Update).
public enum LinkLatency: Hashable, Sendable {
  /// Prompt: the shortest intervals.
  case low
  /// Between the two.
  case medium
  /// Sparing: long intervals, and connection events that are skipped.
  case high
}

/// Names a service of a local client; chosen by the caller, unique in it.
public struct LocalServiceID: Hashable, Sendable {
  /// The number; it says nothing of handles.
  public var rawValue: UInt64

  /// Wraps a number.
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// Names a characteristic of a local client; chosen by the caller, unique in it.
public struct LocalCharacteristicID: Hashable, Sendable {
  /// The number; it says nothing of handles.
  public var rawValue: UInt64

  /// Wraps a number.
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// Numbers a request that a central has sent; chosen by the radio, unique in its client while the request waits for an answer.
public struct ServerRequestID: Hashable, Sendable {
  /// The number.
  public var rawValue: UInt64

  /// Wraps a number.
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// A service to publish (Core Vol 3 Part G 3.1).
public struct LocalService: Hashable, Sendable {
  /// By which it is removed, and included by others.
  public var id: LocalServiceID
  /// Its type; several services may have the same.
  public var uuid: BluetoothUUID
  /// Whether it can be found by itself; a secondary service is there to be included.
  public var isPrimary: Bool
  /// Services of the same client that were added before, in the order of their Include declarations.
  public var includedServices: [LocalServiceID]
  /// In the order of their declarations.
  public var characteristics: [LocalCharacteristic]

  /// Describes a service.
  public init(
    id: LocalServiceID, uuid: BluetoothUUID, isPrimary: Bool, includedServices: [LocalServiceID] = [],
    characteristics: [LocalCharacteristic]
  ) {
    self.id = id
    self.uuid = uuid
    self.isPrimary = isPrimary
    self.includedServices = includedServices
    self.characteristics = characteristics
  }
}

/// A characteristic to publish. Client configuration and extended properties descriptors are made by the radio.
public struct LocalCharacteristic: Hashable, Sendable {
  /// Which the client is told with each access.
  public var id: LocalCharacteristicID
  /// Its type; several characteristics of a service may have the same.
  public var uuid: BluetoothUUID
  /// What centrals are told that it can do (Core Vol 3 Part G 3.3.1.1).
  public var properties: GATTProperties
  /// What they may do with its value.
  public var permissions: GATTPermissions
  /// Subscribing needs an encrypted link.
  public var notifyRequiresEncryption: Bool
  /// At most 512 octets; served by the radio itself where not nil; else each access asks the client.
  public var staticValue: Data?
  /// Descriptors with their values, served by the radio.
  public var descriptors: [LocalDescriptor]

  /// Describes a characteristic.
  public init(
    id: LocalCharacteristicID, uuid: BluetoothUUID, properties: GATTProperties, permissions: GATTPermissions,
    notifyRequiresEncryption: Bool = false, staticValue: Data? = nil, descriptors: [LocalDescriptor] = []
  ) {
    self.id = id
    self.uuid = uuid
    self.properties = properties
    self.permissions = permissions
    self.notifyRequiresEncryption = notifyRequiresEncryption
    self.staticValue = staticValue
    self.descriptors = descriptors
  }
}

/// A descriptor to publish.
public struct LocalDescriptor: Hashable, Sendable {
  /// Its type, such as 2901, Characteristic User Description.
  public var uuid: BluetoothUUID
  /// As it is read, at most 512 octets; centrals cannot change it.
  public var value: Data

  /// Describes a descriptor.
  public init(uuid: BluetoothUUID, value: Data) {
    self.uuid = uuid
    self.value = value
  }
}

/// Who may access a local attribute; without a bit the radio answers "not permitted" itself.
public struct GATTPermissions: OptionSet, Hashable, Sendable {
  /// The bits; they do not go on the air.
  public var rawValue: UInt8

  /// Takes bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Reads, over any link.
  public static let read = Self(rawValue: 0x01)
  /// Writes with and without response, over any link.
  public static let write = Self(rawValue: 0x02)
  /// Reads over an encrypted link; over another one the answer is "insufficient encryption" or "insufficient authentication".
  public static let readEncrypted = Self(rawValue: 0x04)
  /// Writes over an encrypted link, as with ``readEncrypted``.
  public static let writeEncrypted = Self(rawValue: 0x08)
}

/// One write of a batch.
public struct ServerWrite: Hashable, Sendable {
  /// What is written.
  public var characteristic: LocalCharacteristicID
  /// Where in the value, in octets; 0 but for parts of a long write.
  public var offset: Int
  /// The octets, at most 512.
  public var value: Data

  /// Makes a write.
  public init(characteristic: LocalCharacteristicID, offset: Int, value: Data) {
    self.characteristic = characteristic
    self.offset = offset
    self.value = value
  }
}

/// What a peripheral is told. A central's first event is whatever it does first: there is no "connected" in this role.
public enum PeripheralEvent: Sendable {
  /// The adapter's state; when it leaves `poweredOn`, links are gone; below `poweredOff` services are withdrawn as well.
  case adapterStateChanged(AdapterState)
  /// The answer to ``PeripheralRadio/addService(_:)``.
  case serviceAdded(LocalServiceID, Result<Void, RadioError>)
  /// The answer to ``PeripheralRadio/startAdvertising(_:)``.
  case advertisingStarted(Result<Void, RadioError>)
  /// A central reads, from `offset` on; answer with `respond(toRead:with:)`.
  case read(ServerRequestID, central: PeerID, LocalCharacteristicID, offset: Int)
  /// A central writes: one write, or all that was prepared, part by part in the order of arrival, once it is executed.
  ///
  /// A radio whose host joins parts that follow each other delivers them joined. `needsResponse` is false for write commands.
  case write(ServerRequestID, central: PeerID, [ServerWrite], needsResponse: Bool)
  /// A central wants notifications or indications of the characteristic.
  case subscribed(central: PeerID, LocalCharacteristicID)
  /// It wants them no more. Also posted for each subscription of a central whose link ends.
  case unsubscribed(central: PeerID, LocalCharacteristicID)
  /// There is room after ``PeripheralRadio/notify(_:of:to:)`` has returned false.
  case readyToNotify
  /// The answer to ``PeripheralRadio/publishChannel(requiresEncryption:)``, with the PSM that the radio has chosen.
  case channelPublished(Result<PSM, RadioError>)
  /// The answer to ``PeripheralRadio/unpublishChannel(_:)``.
  case channelUnpublished(PSM, Result<Void, RadioError>)
  /// A central has opened a channel to a published PSM.
  case channelOpened(central: PeerID, PSM, any RadioChannel)
}
