/// What Bluetooth can do for this process right now; states below `poweredOff` mean that nothing of it survives.
public enum CBManagerState: Int, Sendable {
  /// Not known yet; an update follows soon.
  case unknown = 0
  /// The link to the system's Bluetooth service was lost and is expected back.
  case resetting = 1
  /// There is no radio, or it lacks the role.
  case unsupported = 2
  /// This process may not use Bluetooth.
  case unauthorized = 3
  /// Switched off.
  case poweredOff = 4
  /// Ready: the only state in which commands are accepted.
  case poweredOn = 5
}

/// Whether this process may use Bluetooth.
public enum CBManagerAuthorization: Int, Sendable {
  case notDetermined = 0
  case restricted = 1
  case denied = 2
  case allowedAlways = 3
}

/// The connection of a ``CBPeripheral`` as its manager sees it.
public enum CBPeripheralState: Int, Sendable {
  case disconnected = 0
  case connecting = 1
  case connected = 2
  case disconnecting = 3
}

/// How a value is written.
public enum CBCharacteristicWriteType: Int, Sendable {
  /// As a request that the peer answers.
  case withResponse = 0
  /// As a command that nobody answers.
  case withoutResponse = 1
}

/// What happened to a connection of the host.
public enum CBConnectionEvent: Int, Sendable {
  case peerDisconnected = 0
  case peerConnected = 1
}

/// How prompt the link to a central should be, at the cost of energy.
public enum CBPeripheralManagerConnectionLatency: Int, Sendable {
  case low = 0
  case medium = 1
  case high = 2
}

@available(*, deprecated, message: "Use CBManagerState instead")
public enum CBCentralManagerState: Int, Sendable {
  case unknown = 0
  case resetting = 1
  case unsupported = 2
  case unauthorized = 3
  case poweredOff = 4
  case poweredOn = 5
}

@available(*, deprecated, message: "Use CBManagerState instead")
public enum CBPeripheralManagerState: Int, Sendable {
  case unknown = 0
  case resetting = 1
  case unsupported = 2
  case unauthorized = 3
  case poweredOff = 4
  case poweredOn = 5
}

@available(*, deprecated, message: "Use CBManagerAuthorization instead")
public enum CBPeripheralManagerAuthorizationStatus: Int, Sendable {
  case notDetermined = 0
  case restricted = 1
  case denied = 2
  case authorized = 3
}

/// What a characteristic can do: the octet of the air (Core Vol 3 Part G 3.3.1.1) and two bits for local ones.
public struct CBCharacteristicProperties: OptionSet, Sendable {
  public let rawValue: UInt
  public init(rawValue: UInt) { self.rawValue = rawValue }

  /// Broadcast in advertising data; not for local characteristics.
  public static var broadcast: Self { Self(rawValue: 0x01) }
  public static var read: Self { Self(rawValue: 0x02) }
  public static var writeWithoutResponse: Self { Self(rawValue: 0x04) }
  public static var write: Self { Self(rawValue: 0x08) }
  public static var notify: Self { Self(rawValue: 0x10) }
  public static var indicate: Self { Self(rawValue: 0x20) }
  public static var authenticatedSignedWrites: Self { Self(rawValue: 0x40) }
  /// More properties in a descriptor; not for local characteristics.
  public static var extendedProperties: Self { Self(rawValue: 0x80) }
  /// Notifies over an encrypted link only; local, never on the air.
  public static var notifyEncryptionRequired: Self { Self(rawValue: 0x100) }
  /// Indicates over an encrypted link only; local, never on the air.
  public static var indicateEncryptionRequired: Self { Self(rawValue: 0x200) }
}

/// Who may access the value of a local characteristic.
public struct CBAttributePermissions: OptionSet, Sendable {
  public let rawValue: UInt
  public init(rawValue: UInt) { self.rawValue = rawValue }

  public static var readable: Self { Self(rawValue: 0x01) }
  public static var writeable: Self { Self(rawValue: 0x02) }
  public static var readEncryptionRequired: Self { Self(rawValue: 0x04) }
  public static var writeEncryptionRequired: Self { Self(rawValue: 0x08) }
}
