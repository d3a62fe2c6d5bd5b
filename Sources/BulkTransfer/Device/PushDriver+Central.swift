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
    switch target {
    case .name(let name): guard advertised == name || peripheral.name == name else { return }
    case .identifier(let identifier): guard peripheral.identifier == identifier else { return }
    }
    use(peripheral)
  }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    guard peripheral === self.peripheral else { return }
    handleLink(.connected)
  }

  func centralManager(
    _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
  ) {
    guard peripheral === self.peripheral else { return }
    handleLink(.lost(error?.localizedDescription ?? "the connection failed"))
  }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
  ) {
    guard peripheral === self.peripheral else { return }
    lost(error?.localizedDescription ?? "the connection was ended")
  }

  /// Looks for the target: a known device is connected to at once, any other must advertise first.
  func find(_ target: DeviceLink.Target) {
    if case .identifier(let identifier) = target,
      let known = manager?.retrievePeripherals(withIdentifiers: [identifier]).first
    {
      return use(known)
    }
    manager?.scanForPeripherals(withServices: nil, options: nil)
  }

  private func use(_ peripheral: CBPeripheral) {
    self.peripheral = peripheral
    peripheral.delegate = self
    handleLink(.found)
  }

  private func lostRadio(_ why: String, isFinal: Bool) {
    // What was discovered before is not valid any more.
    if session != nil { lost(why) }
    handleLink(.radioUnavailable(why, isFinal: isFinal))
  }
}
