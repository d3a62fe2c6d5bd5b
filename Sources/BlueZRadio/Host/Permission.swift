internal import DBus
internal import Radio

/// What errors of the bus and of daemons say about permission; `allowed`: they are about something else.
///
/// Who cannot even reach the bus is kept in a sandbox, or by the system's policy on sockets, which is not the user's to change: restricted. Whom the bus or
/// the daemon turns away is denied, which its policy for that user, or a group, may change. polkit speaks through the daemons that
/// ask it. Sources: D-Bus Specification, org.bluez(5), polkit(8).
enum Permission {
  private static let prefix = "org.freedesktop.DBus.Error."
  private static let refusals: Set<String> = [
    DBusErrorName.accessDenied, prefix + "AuthFailed", prefix + "InteractiveAuthorizationRequired",
    "org.bluez.Error.NotAuthorized", "org.freedesktop.PolicyKit1.Error.NotAuthorized",
  ]

  /// Of an error in opening the connection to the bus.
  static func ofBus(_ error: DBusError) -> RadioAuthorization {
    switch error.name {
    // The bus has been reached, and does not know this user.
    case prefix + "AuthFailed": .denied
    // connect(2) with EACCES or EPERM; socket(2) with EAFNOSUPPORT, as of RestrictAddressFamilies= (systemd.exec(5)).
    case DBusErrorName.accessDenied: error.kind == .reply ? .denied : .restricted
    case DBusErrorName.notSupported: .restricted
    default: .allowed
    }
  }

  /// Of the answer to a call.
  static func ofDaemon(_ error: DBusError) -> RadioAuthorization {
    refusals.contains(error.name) ? .denied : .allowed
  }
}
