internal import DBus
internal import Radio

/// Advertising as objects of bluetoothd. Source: org.bluez.LEAdvertisement(5), org.bluez.LEAdvertisingManager(5).
extension PeripheralCore {
  private static let retryDelay = Duration.seconds(1)

  func startAdvertising(_ advertisement: Advertisement) {
    guard isOn else { return sink(.advertisingStarted(.failure(.poweredDown))) }
    carryOut(advertising.start(advertisement))
  }

  func stopAdvertising() { carryOut(advertising.stop()) }

  func resumeAdvertising() { carryOut(advertising.resume()) }

  func withdrawAdvertisement() {
    carryOut(advertising.withdraw())
    advertisementExports = [:]
  }

  private func carryOut(_ steps: [AdvertisingState.Step]) {
    for step in steps {
      switch step {
      case .register(let number, let advertisement): register(number, advertisement)
      case .unregister(let number): unregister(number)
      case .answer(let error): sink(.advertisingStarted(error.map { .failure($0) } ?? .success(())))
      case .lost(let error): host.log("Advertising has stopped: \(error)")
      case .retryLater:
        _ = host.schedule(after: Self.retryDelay) { [weak self] in
          guard let self, isOn else { return }
          carryOut(advertising.retry())
        }
      }
    }
  }

  private func register(_ number: AdvertisingState.Number, _ advertisement: Advertisement) {
    guard let bus = host.bus, let adapter = host.adapter.path else {
      return carryOut(advertising.registered(number, .failure(.poweredDown)))
    }
    let fit = AdvertisementFit(advertisement)
    if !fit.omissions.isEmpty {
      host.log("An advertisement is too long: it goes without \(fit.omissions.joined(separator: ", ")).")
    }
    let export = bus.export(
      [interface(fit.contents, number)], at: root.child("advertisement\(number)")
    ) { [host] result in
      if case .failure(let error) = result { host.log("An advertisement cannot be exported: \(error)") }
    }
    advertisementExports[number] = export
    // This object stays until then, and the connection with it: a daemon (5.66) that loses a client in the middle of this keeps the advertisement for ever.
    host.call(
      adapter, BlueZ.advertisingManager, "RegisterAdvertisement",
      [.objectPath(export.path), .options([:])]
    ) { [self] result in
      if case .failure = result { advertisementExports[number] = nil }
      carryOut(advertising.registered(number, result.map { _ in }.mapError(Self.failure)))
    }
  }

  private func unregister(_ number: AdvertisingState.Number) {
    guard let export = advertisementExports.removeValue(forKey: number), let adapter = host.adapter.path
    else { return }
    host.call(
      adapter, BlueZ.advertisingManager, "UnregisterAdvertisement", [.objectPath(export.path)]
    ) { [self] _ in withExtendedLifetime((self, export)) {} }
  }

  private static func failure(_ error: DBusError) -> RadioError {
    switch error.name {
    case BlueZ.Failure.notPermitted:
      RadioError(.outOfSpace, "the adapter takes no more advertisements: \(error.message)")
    case BlueZ.Failure.invalidLength:
      RadioError(.outOfSpace, "the advertisement is too long: \(error.message)")
    case BlueZ.Failure.alreadyExists: RadioError(.alreadyAdvertising, error.message)
    case BlueZ.Failure.notReady: .poweredDown
    case DBusErrorName.unknownMethod, DBusErrorName.unknownInterface, DBusErrorName.unknownObject:
      RadioError(.notSupported, "this adapter cannot advertise: \(error)")
    default:
      error.kind == .timedOut
        ? RadioError(.timeout, "bluetoothd did not answer about an advertisement")
        : RadioError(.other, "bluetoothd did not take the advertisement: \(error)")
    }
  }

  private func interface(
    _ advertisement: Advertisement, _ number: AdvertisingState.Number
  ) -> DBusInterface {
    DBusInterface(
      BlueZ.advertisement,
      methods: [
        DBusMethod("Release") { [weak self] invocation in
          try? invocation.reply()
          guard let self, invocation.message.sender == host.owner else { return }
          advertisementExports[number] = nil
          carryOut(advertising.released(number))
        }
      ], properties: advertisement.daemonProperties.map { Self.constant($0.name, $0.value) })
  }
}

extension Advertisement {
  /// Properties of the object, only those that say something.
  var daemonProperties: [(name: String, value: DBusValue)] {
    var properties: [(name: String, value: DBusValue)] = [
      ("Type", .string("peripheral")), ("Discoverable", .boolean(true)),
    ]
    if !services.isEmpty { properties.append(("ServiceUUIDs", services.map(\.longText).dbusValue)) }
    if !solicitedServices.isEmpty {
      properties.append(("SolicitUUIDs", solicitedServices.map(\.longText).dbusValue))
    }
    if let localName, !localName.isEmpty { properties.append(("LocalName", .string(localName))) }
    if let manufacturerData, manufacturerData.count >= 2 {
      let bytes = Array(manufacturerData)
      let company = UInt16(bytes[0]) | UInt16(bytes[1]) << 8
      properties.append(
        (
          "ManufacturerData",
          [company: DBusVariant(containing: .bytes(Array(bytes.dropFirst(2))))].dbusValue
        ))
    }
    if !serviceData.isEmpty {
      let data = Dictionary(
        uniqueKeysWithValues: serviceData.map {
          ($0.key.longText, DBusVariant(containing: .bytes(Array($0.value))))
        })
      properties.append(("ServiceData", data.dbusValue))
    }
    // How strong the signal is, is the controller's to say.
    if txPower != nil { properties.append(("Includes", ["tx-power"].dbusValue)) }
    return properties
  }
}
