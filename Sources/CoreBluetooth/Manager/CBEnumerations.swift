// Cases count from zero, as those of Apple's framework do.

/// What Bluetooth can do for this process right now; states below `poweredOff` mean that nothing of it survives.
public enum CBManagerState: Int, Sendable {
  /// Not known yet; an update follows soon.
  case unknown
  /// The link to the system's Bluetooth service was lost and is expected back.
  case resetting
  /// There is no radio, or it lacks the role.
  case unsupported
  /// This process may not use Bluetooth.
  case unauthorized
  /// Switched off.
  case poweredOff
  /// Ready: the only state in which commands are accepted.
  case poweredOn
}

/// Whether this process may use Bluetooth.
public enum CBManagerAuthorization: Int, Sendable {
  case notDetermined, restricted, denied, allowedAlways
}

/// The connection of a ``CBPeripheral`` as its manager sees it.
public enum CBPeripheralState: Int, Sendable {
  case disconnected, connecting, connected, disconnecting
}

/// How a value is written.
public enum CBCharacteristicWriteType: Int, Sendable {
  /// As a request that the peer answers.
  case withResponse
  /// As a command that nobody answers.
  case withoutResponse
}

/// What happened to a connection of the host.
public enum CBConnectionEvent: Int, Sendable {
  case peerDisconnected, peerConnected
}

/// How prompt the link to a central should be, at the cost of energy.
public enum CBPeripheralManagerConnectionLatency: Int, Sendable {
  case low, medium, high
}

@available(*, deprecated, message: "Use CBManagerState instead")
public enum CBCentralManagerState: Int, Sendable {
  case unknown, resetting, unsupported, unauthorized, poweredOff, poweredOn
}

@available(*, deprecated, message: "Use CBManagerState instead")
public enum CBPeripheralManagerState: Int, Sendable {
  case unknown, resetting, unsupported, unauthorized, poweredOff, poweredOn
}

@available(*, deprecated, message: "Use CBManagerAuthorization instead")
public enum CBPeripheralManagerAuthorizationStatus: Int, Sendable {
  case notDetermined, restricted, denied, authorized
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
