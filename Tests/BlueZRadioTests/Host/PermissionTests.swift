import DBus
import Radio
import Testing

@testable import BlueZRadio

@Suite struct PermissionTests {
  @Test(
    "who does not reach the bus is restricted, whom it turns away is denied",
    arguments: [
      (DBusErrorName.accessDenied, DBusError.Kind.system, .restricted),
      (DBusErrorName.notSupported, .system, .restricted),
      (DBusErrorName.accessDenied, .reply, .denied),
      ("org.freedesktop.DBus.Error.AuthFailed", .system, .denied),
      ("org.freedesktop.DBus.Error.FileNotFound", .system, .allowed),
      (DBusErrorName.noServer, .system, .allowed),
    ] as [(String, DBusError.Kind, RadioAuthorization)])
  func ofTheBus(name: String, kind: DBusError.Kind, answer: RadioAuthorization) {
    #expect(Permission.ofBus(DBusError(kind: kind, name: name, message: "")) == answer)
  }

  @Test(
    arguments: [
      (DBusErrorName.accessDenied, .denied),
      ("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", .denied),
      ("org.bluez.Error.NotAuthorized", .denied), ("org.freedesktop.PolicyKit1.Error.NotAuthorized", .denied),
      (DBusErrorName.serviceUnknown, .allowed), ("org.bluez.Error.NotReady", .allowed),
      (DBusErrorName.noReply, .allowed),
    ] as [(String, RadioAuthorization)])
  func ofTheDaemon(name: String, answer: RadioAuthorization) {
    #expect(Permission.ofDaemon(DBusError(name: name, message: "")) == answer)
  }
}
