internal import DBus
internal import Radio

/// Pairs as a device without display and keys: an agent of this program, for pairings that it takes part in.
///
/// bluetoothd begins a pairing by itself where a peer asks for more security than the link has, and asks its default agent whether to go on: without
/// one it refuses, and the link ends. The first agent of all is its default, so this one is there before a pairing can begin. Where somebody else's
/// was first, as on a desktop, a person is asked.
///
/// Source: org.bluez.Agent(5), org.bluez.AgentManager(5).
final class PairingAgent: @unchecked Sendable {
  // Everything happens on the host's queue.
  private unowned let host: BlueZHost
  private var export: DBusExport?
  private var isRegistered = false
  private var offersSecurity = false

  private static let path: ObjectPath = "/bluehaul/pairing"
  private static let limit = Duration.seconds(60)

  init(_ host: BlueZHost) { self.host = host }

  /// The daemon has gone, and the registration with it.
  func reset() {
    isRegistered = false
    offersSecurity = false
    export = nil
  }

  /// A link will be made to a device, which may ask for a pairing.
  func prepare() { register {} }

  /// Something is published that asks for a pairing.
  func prepareForCentrals() {
    offersSecurity = true
    prepare()
  }

  /// Whether a pairing with a device may go on. What other adapters do is the business of other programs, which may have no other agent.
  private func accepts(_ device: ObjectPath) -> Bool {
    guard let adapter = host.adapter.path, device.isWithin(adapter) else { return true }
    return offersSecurity || host.central.isLinking(device)
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
        switch result {
        case .success: self?.isRegistered = true
        case .failure(let error) where error.name == BlueZ.Failure.alreadyExists: self?.isRegistered = true
        case .failure: break
        }
        then()
      }
    }
    guard export == nil else { return register() }
    export = bus.export([interface], at: Self.path) { _ in register() }
  }

  private var interface: DBusInterface {
    let device = DBusArgument("device", .objectPath)
    let accept: @Sendable (DBusInvocation) -> Void = { try? $0.reply() }
    let refuse: @Sendable (DBusInvocation) -> Void = {
      $0.fail(DBusError(name: BlueZ.Failure.rejected, message: "there is nobody to ask"))
    }
    let decide: @Sendable (DBusInvocation) -> Void = { [weak self] invocation in
      guard case .objectPath(let device)? = invocation.message.body.first, self?.accepts(device) == true
      else { return refuse(invocation) }
      accept(invocation)
    }
    return DBusInterface(
      BlueZ.agent,
      methods: [
        DBusMethod("Release", handler: accept), DBusMethod("Cancel", handler: accept),
        DBusMethod("RequestAuthorization", in: [device], handler: decide),
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
