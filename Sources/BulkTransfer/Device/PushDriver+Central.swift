internal import CoreBluetooth
internal import Foundation

extension PushDriver: CBCentralManagerDelegate {
  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    switch central.state {
    case .poweredOn:
      handleLink(.radioReady)
    case .unsupported:
      lostRadio("there is no Bluetooth adapter that can be used", isFinal: true)
    case .unauthorized:
      lostRadio("this program is not permitted to use Bluetooth", isFinal: true)
    case .poweredOff:
      lostRadio("Bluetooth is switched off", isFinal: false)
    default:
      lostRadio("Bluetooth is not ready", isFinal: false)
    }
  }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
    rssi RSSI: NSNumber
  ) {
    guard self.peripheral == nil else { return }
    let advertised = advertisementData[CBAdvertisementDataLocalNameKey] as? String
    guard target.matches(peripheral.identifier, advertised: advertised, known: peripheral.name) else {
      return
    }
    use(peripheral)
  }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    guard peripheral === self.peripheral else { return }
    isEnding = false
    handleLink(.connected)
  }

  func centralManager(
    _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
  ) {
    guard isNews(of: peripheral) else { return }
    handleLink(.lost(error?.localizedDescription ?? "the connection failed"))
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    guard isNews(of: peripheral) else { return }
    lost(error?.localizedDescription ?? "the connection was ended")
  }

  /// Whether the end of a connection is one that this side has not asked for.
  private func isNews(of peripheral: CBPeripheral) -> Bool {
    guard peripheral === self.peripheral else { return false }
    defer { isEnding = false }
    return !isEnding
  }

  /// Looks for the target: a known device is connected to at once, any other must advertise first.
  func find(_ target: DeviceLink.Target) {
    var identifier = known
    if case .identifier(let wanted) = target { identifier = wanted }
    if let identifier,
      let known = manager?.retrievePeripherals(withIdentifiers: [identifier]).first
    {
      return use(known)
    }
    manager?.scanForPeripherals(withServices: nil, options: nil)
  }

  private func use(_ peripheral: CBPeripheral) {
    self.peripheral = peripheral
    known = peripheral.identifier
    peripheral.delegate = self
    handleLink(.found)
  }

  private func lostRadio(_ why: String, isFinal: Bool) {
    // Links end without a word of their own then, and the object may be void afterwards.
    if session != nil { lost(why) }
    isEnding = false
    peripheral?.delegate = nil
    peripheral = nil
    handleLink(.radioUnavailable(why, isFinal: isFinal))
  }
}
