import CoreBluetooth

/// The central's side, one singleton for everything.
class Phone: NSObject {
  static let shared = Phone()

  enum State {
    case off
    case scanning(TimeLimit)
    case connecting(CBPeripheral, TimeLimit)
    case discovering(CBPeripheral, TimeLimit)
    case writing(CBPeripheral, [Data])
    case streaming(CBPeripheral, CBL2CAPChannel)
    case leaving(CBPeripheral)
  }

  var manager: CBCentralManager!
  var state = State.off
  let sent = Data((0..<3000).map { UInt8($0 & 0xFF) })
  var position = 0
  var received = Data()

  func start() {
    var options: [String: Any] = [CBCentralManagerOptionShowPowerAlertKey: true]
    options[CBCentralManagerOptionRestoreIdentifierKey] = restoreKey
    manager = CBCentralManager(delegate: self, queue: nil, options: options)
  }

  func limit(_ what: String) -> TimeLimit {
    return TimeLimit(seconds: 60) {
      print("no \(what) within a minute, in \(self.state)")
      exit(1)
    }
  }

  func fail(_ what: String, _ error: Error?) -> Never {
    print("\(what): \(error?.localizedDescription ?? "no error")")
    exit(1)
  }

  /// Reads an error as programs do.
  func understand(_ error: Error) -> NotebookError {
    if let error = error as? CBATTError { return .refused(error.code) }
    if (error as NSError).domain == CBErrorDomain, let code = CBError.Code(rawValue: (error as NSError).code),
      outOfRangeCodes.contains(code)
    {
      return .lost
    }
    return .other(error)
  }
}

extension Phone: CBCentralManagerDelegate {
  func centralManagerDidUpdateState(_ central: CBCentralManager) {
    print("Bluetooth is \(central.state.label), authorized: \(CBManager.authorization == .allowedAlways)")
    guard central.state == .poweredOn else { exit(1) }
    central.scanForPeripherals(
      withServices: [notebookID], options: [CBCentralManagerScanOptionAllowDuplicatesKey: false])
    state = .scanning(limit("device"))
  }

  func centralManager(
    _ central: CBCentralManager, didDiscover peripheral: CBPeripheral,
    advertisementData: [String: Any], rssi RSSI: NSNumber
  ) {
    guard case .scanning = state, RSSI.intValue < 20 else { return }
    guard (advertisementData[CBAdvertisementDataIsConnectable] as? Bool) == true,
      let services = advertisementData[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID]
    else { return }
    let name = advertisementData[CBAdvertisementDataLocalNameKey] as? String ?? ""
    print("found \(name) with \(services.count) service")
    central.stopScan()
    central.connect(peripheral, options: nil)
    state = .connecting(peripheral, limit("connection"))
  }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    peripheral.delegate = self
    peripheral.discoverServices([notebookID])
    state = .discovering(peripheral, limit("services"))
  }

  func centralManager(
    _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?
  ) { fail("no connection", error) }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?
  ) {
    guard case .leaving(let left) = state, left === peripheral, error == nil else {
      fail("the link has ended", error)
    }
    let known = central.retrievePeripherals(withIdentifiers: [peripheral.identifier])
    print("left \(peripheral.label), which is known: \(known.first === peripheral)")
    print("callbacks were counted: \(callbacks > 0)")
    exit(0)
  }
}

extension Phone: CBPeripheralDelegate {
  func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
    guard let service = peripheral.notebook else { fail("no notebook", error) }
    peripheral.discoverCharacteristics(nil, for: service)
  }

  func peripheral(
    _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?
  ) {
    for characteristic in service.characteristics ?? [] {
      if characteristic.properties.contains(.notify) {
        peripheral.setNotifyValue(true, for: characteristic)
      } else if characteristic.properties.contains(.read) {
        peripheral.readValue(for: characteristic)
      }
    }
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: Error?
  ) {
    if let error = error { fail("no notifications", error) }
    guard case .discovering = state else { return }
    state = .writing(peripheral, [Data("milk".utf8), Data(count: longestNote + 1)])
    writeNext()
  }

  func writeNext() {
    guard case .writing(let peripheral, var notes) = state, !notes.isEmpty else { return }
    let note = notes.removeFirst()
    guard let characteristic = peripheral.characteristic(noteID),
      note.count <= peripheral.maximumWriteValueLength(for: .withResponse)
    else { fail("cannot write", nil) }
    peripheral.writeValue(note, for: characteristic, type: .withResponse)
    state = .writing(peripheral, notes)
  }

  func peripheral(
    _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: Error?
  ) {
    guard let error = error else { return print("written") }
    switch understand(error) {
    case .refused(.invalidAttributeValueLength): print("refused: too long")
    case .refused(let code): fail("refused with \(code.rawValue)", error)
    case .lost, .other: fail("not written", error)
    }
    guard let psm = peripheral.characteristic(psmID), let value = psm.value, value.count == 2 else {
      fail("no PSM", nil)
    }
    peripheral.openL2CAPChannel(CBL2CAPPSM(value[0]) | CBL2CAPPSM(value[1]) << 8)
  }

  func peripheral(
    _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?
  ) {
    callbacks += 1
    guard let data = characteristic.value else { return }
    switch characteristic.uuid {
    case noteID:
      print("the note is: \(String(data: data, encoding: .utf8) ?? "?")")
      writeNext()
    case CBUUID(string: CBUUIDL2CAPPSMCharacteristicString): break
    default: fail("a value of \(characteristic.uuid)", error)
    }
  }

  func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: Error?) {
    guard let channel = channel else { fail("no channel", error) }
    state = .streaming(peripheral, channel)
    // The streams as they come, without unwrapping.
    let input = channel.inputStream
    let output = channel.outputStream
    input?.delegate = self
    output?.delegate = self
    channel.inputStream.schedule(in: RunLoop.main, forMode: .default)
    output.schedule(in: .current, forMode: RunLoop.Mode.default)
    input.open()
    output.open()
  }
}

extension Phone: StreamDelegate {
  func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
    guard case .streaming(let peripheral, let channel) = state else { return }
    switch eventCode {
    case Stream.Event.hasSpaceAvailable:
      guard position < sent.count else { return }
      position += sent.suffix(from: position).withUnsafeBytes { bytes in
        channel.outputStream.write(
          bytes.bindMemory(to: UInt8.self).baseAddress ?? UnsafePointer(bitPattern: 1).unsafelyUnwrapped,
          maxLength: bytes.count)
      }
    case Stream.Event.hasBytesAvailable:
      let buffer = UnsafeMutablePointer<UInt8>.allocate(capacity: 512)
      defer { buffer.deallocate() }
      while channel.inputStream.hasBytesAvailable {
        let count = channel.inputStream.read(buffer, maxLength: 512)
        guard count > 0 else { break }
        received.append(buffer, count: count)
      }
      guard received.count >= sent.count else { return }
      print("\(received.count) octets came back, \(received == sent ? "the same" : "others")")
      channel.inputStream.close()
      channel.outputStream.close()
      state = .leaving(peripheral)
      manager.cancelPeripheralConnection(peripheral)
    case Stream.Event.errorOccurred, Stream.Event.endEncountered:
      fail("the channel has ended", aStream.streamError)
    default: break
    }
  }
}
