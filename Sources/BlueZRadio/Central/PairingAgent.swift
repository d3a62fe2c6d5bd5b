internal import DBus
internal import Radio

/// Pairs on demand, as a device without display and keys: an agent of this program, and only for pairings that it has begun.
///
/// Source: org.bluez.Agent(5), org.bluez.AgentManager(5).
final class PairingAgent: @unchecked Sendable {
  // Everything happens on the host's queue.
  private unowned let host: BlueZHost
  private var export: DBusExport?
  private var isRegistered = false

  private static let path: ObjectPath = "/bluehaul/pairing"
  private static let limit = Duration.seconds(60)

  init(_ host: BlueZHost) { self.host = host }

  /// The daemon has gone, and the registration with it.
  func reset() {
    isRegistered = false
    export = nil
  }

  /// Pairs with a device; tells whether the link is as secure as it gets by that.
  func pair(_ device: ObjectPath, completion: @escaping @Sendable (Bool) -> Void) {
    register { [weak self] in
      guard let self else { return }
      host.call(device, BlueZ.device, "Pair", timeLimit: Self.limit) { [weak self] result in
        switch result {
        case .success: completion(true)
        case .failure(let error):
          // Paired before: then it is the peer's word that is missing.
          if error.name != BlueZ.Failure.alreadyExists {
            self?.host.log("Pairing with \(device) failed: \(error)")
          }
          completion(false)
        }
      }
    }
  }

  private func register(_ then: @escaping @Sendable () -> Void) {
    guard !isRegistered, let bus = host.bus else { return then() }
    let register = host.whileAlive { [weak self] in
      self?.host.call(
        BlueZ.agentManagerPath, BlueZ.agentManager, "RegisterAgent",
        [.objectPath(Self.path), .string("NoInputNoOutput")]
      ) { [weak self] result in
        if case .success = result { self?.isRegistered = true }
        then()
      }
    }
    guard export == nil else { return register() }
    export = bus.export([Self.interface], at: Self.path) { _ in register() }
  }

  private static var interface: DBusInterface {
    let device = DBusArgument("device", .objectPath)
    let accept: @Sendable (DBusInvocation) -> Void = { try? $0.reply() }
    let refuse: @Sendable (DBusInvocation) -> Void = {
      $0.fail(DBusError(name: BlueZ.Failure.rejected, message: "there is nobody to ask"))
    }
    return DBusInterface(
      BlueZ.agent,
      methods: [
        DBusMethod("Release", handler: accept), DBusMethod("Cancel", handler: accept),
        DBusMethod("RequestAuthorization", in: [device], handler: accept),
        DBusMethod(
          "AuthorizeService", in: [device, DBusArgument("uuid", .string)], handler: refuse),
        DBusMethod(
          "RequestConfirmation", in: [device, DBusArgument("passkey", .uint32)], handler: refuse),
        DBusMethod(
          "RequestPinCode", in: [device], out: [DBusArgument("code", .string)], handler: refuse),
        DBusMethod(
          "RequestPasskey", in: [device], out: [DBusArgument("passkey", .uint32)], handler: refuse),
      ])
  }
}
