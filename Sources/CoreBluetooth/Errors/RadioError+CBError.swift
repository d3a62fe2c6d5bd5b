internal import Foundation
internal import Radio

extension RadioError {
  /// The error as programs see it; the radio's own words stay readable in it.
  var cbError: CBError {
    let code: CBError.Code =
      switch self.code {
      case .invalidParameters: .invalidParameters
      case .notConnected, .notPoweredOn: .notConnected
      case .outOfSpace, .noResources: .outOfSpace
      case .cancelled: .operationCancelled
      case .supervisionTimeout, .timeout: .connectionTimeout
      case .peerTerminated: .peripheralDisconnected
      case .connectionFailed: .connectionFailed
      case .connectionLimit: .connectionLimitReached
      case .unknownPeer: .unkownDevice
      case .notSupported, .psmNotSupported: .operationNotSupported
      case .alreadyAdvertising: .alreadyAdvertising
      case .uuidNotAllowed: .uuidNotAllowed
      case .insufficientSecurity, .other: .unknown
      }
    return CBError(code, userInfo: message.isEmpty ? [:] : [NSLocalizedDescriptionKey: message])
  }
}

extension GATTFailure {
  /// The error as programs see it: of the Attribute Protocol where the peer answered with one, else of the link.
  var error: any Error {
    switch self {
    case .att(let code): CBATTError(CBATTError.Code(rawValue: Int(code.rawValue)) ?? .unlikelyError)
    case .radio(let error): error.cbError
    }
  }
}
