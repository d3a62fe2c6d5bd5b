internal import DBus
internal import Radio

/// What an error of bluetoothd means for an operation on an attribute.
///
/// Source: bluetoothd's replies to operations of GattCharacteristic1 and GattDescriptor1 (org.bluez.GattCharacteristic(5)); what it has no name for
/// it puts into the text as an ATT error.
enum Verdict: Error, Hashable {
  /// Another operation on the same attribute runs: try again.
  case busy
  /// Somebody holds the descriptor for writes or for notifications of the characteristic.
  case held
  /// The link is not secure enough.
  case unpaired(ATTErrorCode)
  /// The operation has failed. `isAnswer`: the peer has said so, and not the daemon.
  case failed(GATTFailure, isAnswer: Bool)
  /// The operation has failed in a way in which it does when the link ends, too.
  case doubtful(GATTFailure, isAnswer: Bool)

  init(_ error: DBusError) {
    switch error.kind {
    case .timedOut:
      self = .failed(.radio(RadioError(.timeout, "bluetoothd has not answered: \(error)")), isAnswer: false)
    case .disconnected, .cancelled:
      self = .doubtful(.radio(RadioError(.notConnected, error.description)), isAnswer: false)
    case .reply: self.init(reply: error)
    default: self = .failed(.radio(RadioError(.other, error.description)), isAnswer: false)
    }
  }

  private init(reply error: DBusError) {
    let text = error.message.lowercased()
    switch error.name {
    case BlueZ.Failure.inProgress: self = .busy
    case BlueZ.Failure.notPermitted where text.contains("acquired"): self = .held
    case BlueZ.Failure.notPermitted where text.contains("read not permitted"):
      self = .failed(.att(.readNotPermitted), isAnswer: true)
    case BlueZ.Failure.notPermitted where text.contains("write not permitted"):
      self = .failed(.att(.writeNotPermitted), isAnswer: true)
    case BlueZ.Failure.notPermitted where text.contains("not paired"):
      // One text for 0x05, 0x0C and 0x0F.
      self = .unpaired(.insufficientAuthentication)
    case BlueZ.Failure.notAuthorized: self = .failed(.att(.insufficientAuthorization), isAnswer: true)
    case BlueZ.Failure.notSupported: self = .failed(.att(.requestNotSupported), isAnswer: false)
    case BlueZ.Failure.invalidOffset: self = .failed(.att(.invalidOffset), isAnswer: true)
    case BlueZ.Failure.invalidValueLength, BlueZ.Failure.invalidLength:
      self = .failed(.att(.invalidAttributeValueLength), isAnswer: true)
    case BlueZ.Failure.invalidArguments where text.contains("offset"):
      self = .failed(.att(.invalidOffset), isAnswer: true)
    case BlueZ.Failure.invalidArguments where text.contains("length"):
      self = .failed(.att(.invalidAttributeValueLength), isAnswer: true)
    case BlueZ.Failure.notConnected:
      self = .doubtful(.radio(RadioError(.notConnected, error.description)), isAnswer: false)
    case DBusErrorName.unknownObject, DBusErrorName.unknownMethod, DBusErrorName.unknownInterface:
      // Its object has gone with a change of the peer's services, or with the link.
      self = .doubtful(.att(.invalidHandle), isAnswer: false)
    default:
      guard let code = Self.attCode(in: text) else {
        self = .doubtful(.radio(RadioError(.other, error.description)), isAnswer: false)
        return
      }
      switch code {
      case .insufficientAuthentication, .insufficientEncryption, .insufficientEncryptionKeySize:
        self = .unpaired(code)
      case .unlikelyError: self = .doubtful(.att(code), isAnswer: true)
      default: self = .failed(.att(code), isAnswer: true)
      }
    }
  }

  /// The code in a text such as "Operation failed with ATT error: 0x80".
  private static func attCode(in text: String) -> ATTErrorCode? {
    guard let range = text.firstRange(of: "att error: 0x") else { return nil }
    let digits = text[range.upperBound...].prefix { $0.isHexDigit }
    guard let value = UInt8(digits, radix: 16), value != 0 else { return nil }
    return ATTErrorCode(rawValue: value)
  }
}

extension LinkMachine.Failure {
  /// What an error of `Connect` means.
  init(_ error: DBusError) {
    guard error.kind == .reply else {
      self = error.kind == .timedOut ? .stuck : .passing
      return
    }
    switch error.name {
    case DBusErrorName.accessDenied, BlueZ.Failure.notAuthorized:
      self = .permanent(
        RadioError(.connectionFailed, "this user may not make links with bluetoothd: \(error)"))
    case BlueZ.Failure.notSupported, BlueZ.Failure.invalidArguments:
      self = .permanent(RadioError(.notSupported, "bluetoothd cannot make this link: \(error)"))
    default: self = .passing
    }
  }
}

extension RadioError {
  /// Why a link has ended, as newer daemons tell it. Source: org.bluez.Device(5), "Disconnected".
  init(disconnection reason: String, _ text: String) {
    switch reason.split(separator: ".").last.map(String.init) ?? "" {
    case "Timeout": self.init(.supervisionTimeout, "the peer was not heard any more")
    case "Remote": self.init(.peerTerminated, "the peer has ended the link")
    case "Authentication": self.init(.peerTerminated, "the link has ended, as its security failed: \(text)")
    case "Local", "Suspend": self.init(.peerTerminated, "this host has ended the link: \(text)")
    default: self.init(.peerTerminated, "the link has ended: \(text)")
    }
  }
}
