internal import DBus
internal import Locking
internal import Radio

/// Publishing services as applications of bluetoothd.
extension PeripheralCore {
  /// A registered application: its objects are there as long as this lives.
  struct Application {
    let tree: ApplicationTree
    let adapter: ObjectPath
    let exports: [DBusExport]
  }

  func addService(_ service: LocalService) {
    guard isOn else { return sink(.serviceAdded(service.id, .failure(.poweredDown))) }
    if service.characteristics.contains(where: \.needsSecurity) { host.pairing.prepareForCentrals() }
    carryOut(book.add(service))
  }

  func removeService(_ id: LocalServiceID) { carryOut(book.remove(id)) }

  func removeAllServices() { carryOut(book.removeAll()) }

  func carryOut(_ steps: [ServiceBook.Step]) {
    for step in steps {
      switch step {
      case .register(let ticket, let services): register(ticket, services)
      case .unregister(let ticket): unregister(ticket)
      case .move(let ticket):
        endSubscriptions(ticket)
        unregister(ticket)
      case .lost(let id, let error): host.log("Service \(id.rawValue) cannot be published again: \(error)")
      case .answer(let id, let error):
        sink(.serviceAdded(id, error.map { .failure($0) } ?? .success(())))
      }
    }
  }

  private func register(_ ticket: ServiceBook.Ticket, _ services: [LocalService]) {
    let tree: ApplicationTree
    do { tree = try ApplicationTree(services, root: root.child("application\(ticket)")) } catch {
      return carryOut(book.registered(ticket, .failure(error)))
    }
    guard let bus = host.bus, let adapter = host.adapter.path else {
      return carryOut(book.registered(ticket, .failure(.poweredDown)))
    }
    applications[ticket] = Application(tree: tree, adapter: adapter, exports: export(tree, bus))
    for characteristic in tree.characteristics { publish(characteristic) }
    host.call(
      adapter, BlueZ.gattManager, "RegisterApplication", [.objectPath(tree.root), .options([:])]
    ) { [self] result in registered(ticket, result) }
  }

  private func publish(_ characteristic: ApplicationTree.Characteristic) {
    let id = characteristic.local.id
    published[id] = characteristic
    shared.withLock { shared in
      if characteristic.local.isOnlyIndicated { shared.indicated.insert(id) }
    }
  }

  private func registered(_ ticket: ServiceBook.Ticket, _ result: Result<DBusMessage, DBusError>) {
    guard let application = applications[ticket] else { return }
    switch result {
    case .success: carryOut(book.registered(ticket, .success(())))
    case .failure(let error):
      forget(ticket)
      carryOut(book.registered(ticket, .failure(Self.failure(error, application.tree))))
    }
  }

  private static func failure(_ error: DBusError, _ tree: ApplicationTree) -> RadioError {
    let uuids = tree.services.map { "\($0.local.uuid)" }.joined(separator: ", ")
    switch error.name {
    case BlueZ.Failure.failed where tree.characteristics.contains { $0.local.notifyRequiresEncryption }:
      return RadioError(
        .notSupported,
        "bluetoothd did not take service \(uuids) (\(error)); perhaps it is too old for subscriptions that need encryption"
      )
    case DBusErrorName.unknownMethod, DBusErrorName.unknownInterface, DBusErrorName.unknownObject:
      return RadioError(.notSupported, "this bluetoothd publishes no services: \(error)")
    default:
      guard error.kind != .timedOut else {
        return RadioError(.timeout, "bluetoothd did not answer about service \(uuids)")
      }
      return RadioError(.other, "bluetoothd did not take service \(uuids): \(error)")
    }
  }

  private func unregister(_ ticket: ServiceBook.Ticket) {
    guard let application = applications[ticket] else { return }
    let isReady = forgetSubscriptions(application)
    // The objects stay until the daemon lets go of them; its answer does not matter then.
    host.call(
      application.adapter, BlueZ.gattManager, "UnregisterApplication", [.objectPath(application.tree.root)]
    ) { [self] _ in withExtendedLifetime((self, application)) {} }
    applications[ticket] = nil
    if isReady { sink(.readyToNotify) }
  }

  /// Services of an application get other handles: the daemon tells centrals that they have changed, and these subscribe again.
  private func endSubscriptions(_ ticket: ServiceBook.Ticket) {
    for characteristic in applications[ticket]?.tree.characteristics ?? [] {
      endSubscriptions(of: characteristic.local.id)
    }
  }

  private func forget(_ ticket: ServiceBook.Ticket) {
    guard let application = applications.removeValue(forKey: ticket) else { return }
    if forgetSubscriptions(application) { sink(.readyToNotify) }
  }

  private func forgetSubscriptions(_ application: Application) -> Bool {
    let ids = Set(application.tree.characteristics.map(\.local.id))
    for id in ids where published[id]?.path.isWithin(application.tree.root) == true {
      published[id] = nil
      announcedStarts[id] = nil
    }
    for device in remembered.keys { remembered[device]?.subtract(ids) }
    return shared.withLock { shared in
      shared.indicated.subtract(ids)
      return shared.subscriptions.forget(ids)
    }
  }

  // MARK: Objects

  /// The object manager comes last, so that it is complete when it is seen.
  private func export(_ tree: ApplicationTree, _ bus: DBusConnection) -> [DBusExport] {
    var exports: [DBusExport] = []
    let export = { [host] (interfaces: [DBusInterface], path: ObjectPath, isManager: Bool) in
      exports.append(
        bus.export(interfaces, at: path, isObjectManager: isManager) { result in
          if case .failure(let error) = result { host.log("\(path) cannot be exported: \(error)") }
        })
    }
    for service in tree.services { export([Self.interface(service)], service.path, false) }
    for characteristic in tree.characteristics {
      export([interface(characteristic)], characteristic.path, false)
      for descriptor in characteristic.descriptors {
        export([descriptorInterface(descriptor, of: characteristic)], descriptor.path, false)
      }
    }
    export([], tree.root, true)
    return exports
  }

  static func constant(_ name: String, _ value: DBusValue) -> DBusProperty {
    DBusProperty(name, value.type, changes: .constant, get: { () throws(DBusError) in value })
  }

  private static func interface(_ service: ApplicationTree.Service) -> DBusInterface {
    var interface = DBusInterface(
      BlueZ.gattService,
      properties: [
        constant("UUID", .string(service.local.uuid.longText)),
        constant("Primary", .boolean(service.local.isPrimary)),
      ])
    if !service.includes.isEmpty {
      interface.properties.append(constant("Includes", service.includes.dbusValue))
    }
    return interface
  }

  private func interface(_ characteristic: ApplicationTree.Characteristic) -> DBusInterface {
    let options = DBusArgument("options", .dictionary(key: .string, value: .variant))
    let bytes = DBusArgument("value", .array(of: .byte))
    let id = characteristic.local.id
    var interface = DBusInterface(
      BlueZ.gattCharacteristic,
      methods: [
        DBusMethod("ReadValue", in: [options], out: [bytes]) { [weak self] in
          self?.read(characteristic.local, $0)
        },
        DBusMethod("WriteValue", in: [bytes, options]) { [weak self] in
          self?.write(characteristic.local, $0)
        },
      ],
      properties: [
        Self.constant("UUID", .string(characteristic.local.uuid.longText)),
        Self.constant("Service", .objectPath(characteristic.service)),
        Self.constant("Flags", characteristic.flags.words.dbusValue),
      ])
    guard characteristic.local.canNotify else { return interface }
    let descriptor = [DBusArgument("fd", .descriptor), DBusArgument("mtu", .uint16)]
    interface.methods += [
      DBusMethod("AcquireNotify", in: [options], out: descriptor) { [weak self] in
        self?.acquireNotify(id, $0)
      },
      DBusMethod("StartNotify") { [weak self] in self?.startNotify(id, $0) },
      DBusMethod("StopNotify") { [weak self] in self?.stopNotify(id, $0) },
      DBusMethod("Confirm") { [weak self] in self?.confirm(id, $0) },
    ]
    // Where this property is, the daemon calls `AcquireNotify`, which alone says who subscribes.
    interface.properties.append(Self.constant("NotifyAcquired", .boolean(false)))
    return interface
  }

  private func descriptorInterface(
    _ descriptor: ApplicationTree.Descriptor, of characteristic: ApplicationTree.Characteristic
  ) -> DBusInterface {
    let options = DBusArgument("options", .dictionary(key: .string, value: .variant))
    let bytes = DBusArgument("value", .array(of: .byte))
    return DBusInterface(
      BlueZ.gattDescriptor,
      methods: [
        DBusMethod("ReadValue", in: [options], out: [bytes]) { [weak self] in
          self?.readFixed(descriptor.local.value, $0)
        },
        DBusMethod("WriteValue", in: [bytes, options]) { invocation in
          invocation.fail(ATTAnswer.refusal(.writeNotPermitted, of: .write))
        },
      ],
      properties: [
        Self.constant("UUID", .string(descriptor.local.uuid.longText)),
        Self.constant("Characteristic", .objectPath(characteristic.path)),
        Self.constant("Flags", ["read"].dbusValue),
      ])
  }
}
