internal import Glibc
internal import Radio
internal import SystemCalls

/// What the kernel's error numbers mean for channels.
///
/// Sources: `l2cap_chan_connect`, `l2cap_le_connect_rsp` and `l2cap_conn_del` of net/bluetooth/l2cap_core.c, `bt_to_errno` of net/bluetooth/lib.c.
extension RadioError {
  /// Why a channel could not be opened. `demanded` is the security level that the kernel asked for at the end.
  ///
  /// The kernel says ECONNREFUSED whatever the peer's reason was. Where that was security, it has raised the level of the socket before.
  init(opening request: L2CAPRequest, _ error: SystemError, demanded: L2CAPSecurity? = nil) {
    let code: Code =
      switch error.number {
      case ECONNREFUSED:
        (demanded ?? request.security) > request.security ? .insufficientSecurity : .psmNotSupported
      case EACCES, EPERM, EBADE, EKEYREJECTED: .insufficientSecurity
      case ENOMEM, ENOBUFS, EMFILE, ENFILE: .noResources
      case EMLINK: .connectionLimit
      case ETIMEDOUT, EHOSTDOWN: .timeout
      case ENETDOWN, EHOSTUNREACH, ENODEV: .notPoweredOn
      case EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT, EOPNOTSUPP: .notSupported
      case EINVAL: .invalidParameters
      case ENOTCONN: .notConnected
      case ECONNRESET: .peerTerminated
      case ECONNABORTED, ECANCELED: .cancelled
      default: .connectionFailed
      }
    self.init(code, "cannot open PSM \(request.psm) of \(request.device): " + Self.words(code, error))
  }

  /// Why a PSM cannot be published.
  init(publishing error: SystemError) {
    let code: Code =
      switch error.number {
      case EADDRINUSE: .outOfSpace
      case EACCES, EPERM: .insufficientSecurity
      case ENOMEM, ENOBUFS, EMFILE, ENFILE: .noResources
      case EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT, EOPNOTSUPP: .notSupported
      case EADDRNOTAVAIL, ENETDOWN, EHOSTUNREACH, ENODEV: .notPoweredOn
      case EINVAL: .invalidParameters
      default: .other
      }
    self.init(code, "cannot accept L2CAP channels: \(error)")
  }

  /// Why an open channel has broken; nil: the kernel does not say.
  init(broken error: SystemError?) {
    guard let error else {
      self.init(.other, "the channel has ended without a reason")
      return
    }
    let code: Code =
      switch error.number {
      case ETIMEDOUT: .supervisionTimeout
      case ECONNRESET: .peerTerminated
      case ECONNABORTED: .cancelled
      case EACCES, EBADE: .insufficientSecurity
      case ENETDOWN, EHOSTDOWN, ENODEV: .notPoweredOn
      case ENOMEM, ENOBUFS: .noResources
      case ENOTCONN, EPIPE: .notConnected
      default: .other
      }
    self.init(code, "the channel has broken: \(error)")
  }

  private static func words(_ code: Code, _ error: SystemError) -> String {
    switch code {
    case .psmNotSupported: "the device refuses: it has nothing on that PSM, or no room for a channel more"
    case .insufficientSecurity: "the device wants a safer link: pair with it"
    default: "\(error)"
    }
  }
}
