public import Foundation

/// An attribute handle (Core Vol 3 Part F 3.2.2): 0x0001...0xFFFF.
public typealias AttributeHandle = UInt16

/// A request of a GATT client.
public enum GATTRequest: Hashable, Sendable {
  /// Primary services, those with one of the UUIDs, or all for nil. Reply: `services`.
  case discoverServices([BluetoothUUID]?)
  /// Services included by a service. Reply: `services`.
  case discoverIncludedServices(of: RemoteService, [BluetoothUUID]?)
  /// Characteristics of a service. Reply: `characteristics`.
  case discoverCharacteristics(of: RemoteService, [BluetoothUUID]?)
  /// Descriptors of a characteristic. Reply: `descriptors`.
  case discoverDescriptors(of: RemoteCharacteristic)
  /// The whole value of a characteristic or descriptor, by Read Blob where it is long. Reply: `value`.
  case read(AttributeHandle)
  /// A write with response, by Prepare and Execute Write where it exceeds ATT MTU - 3; at most 512 octets. Reply: `done`.
  case write(AttributeHandle, Data)
  /// Subscribes or unsubscribes. Reply: `done`.
  case setNotify(RemoteCharacteristic, NotifyMode)
  /// Signal strength of the link. Reply: `rssi`.
  case readRSSI
}

/// How values are pushed to a client.
public enum NotifyMode: Hashable, Sendable {
  /// Not at all.
  case none
  /// Without confirmation.
  case notify
  /// Each confirmed before the next.
  case indicate
}

/// The answer to a ``GATTRequest`` or to opening a channel.
public enum GATTReply: Sendable {
  case services([RemoteService])
  case characteristics([RemoteCharacteristic])
  case descriptors([RemoteDescriptor])
  case value(Data)
  case rssi(Int)
  case channel(any RadioChannel)
  case done
}

/// A service of a peer.
public struct RemoteService: Hashable, Sendable {
  /// First and last handle of the service.
  public var handles: ClosedRange<AttributeHandle>
  /// Its type.
  public var uuid: BluetoothUUID
  /// Primary or secondary.
  public var isPrimary: Bool

  /// Makes a description.
  public init(handles: ClosedRange<AttributeHandle>, uuid: BluetoothUUID, isPrimary: Bool) {
    self.handles = handles
    self.uuid = uuid
    self.isPrimary = isPrimary
  }
}

/// A characteristic of a peer.
public struct RemoteCharacteristic: Hashable, Sendable {
  /// The value's handle, by which it is read and written.
  public var handle: AttributeHandle
  /// The last handle that belongs to the characteristic; its descriptors lie after the value.
  public var endHandle: AttributeHandle
  /// Its type.
  public var uuid: BluetoothUUID
  /// What it can do.
  public var properties: GATTProperties

  /// Makes a description.
  public init(
    handle: AttributeHandle, endHandle: AttributeHandle, uuid: BluetoothUUID, properties: GATTProperties
  ) {
    self.handle = handle
    self.endHandle = endHandle
    self.uuid = uuid
    self.properties = properties
  }
}

/// A descriptor of a peer's characteristic.
public struct RemoteDescriptor: Hashable, Sendable {
  /// Its handle.
  public var handle: AttributeHandle
  /// Its type.
  public var uuid: BluetoothUUID

  /// Makes a description.
  public init(handle: AttributeHandle, uuid: BluetoothUUID) {
    self.handle = handle
    self.uuid = uuid
  }
}

/// Characteristic properties as on the air (Core Vol 3 Part G 3.3.1.1).
public struct GATTProperties: OptionSet, Hashable, Sendable {
  public var rawValue: UInt8
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public static let broadcast = Self(rawValue: 0x01)
  public static let read = Self(rawValue: 0x02)
  public static let writeWithoutResponse = Self(rawValue: 0x04)
  public static let write = Self(rawValue: 0x08)
  public static let notify = Self(rawValue: 0x10)
  public static let indicate = Self(rawValue: 0x20)
  public static let authenticatedSignedWrites = Self(rawValue: 0x40)
  public static let extendedProperties = Self(rawValue: 0x80)
}
