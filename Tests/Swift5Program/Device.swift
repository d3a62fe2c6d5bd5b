import CoreBluetooth

/// The peripheral's side: a note that can be read, written and followed, and a channel that sends back.
class Device: NSObject {
  static let shared = Device()

  var manager: CBPeripheralManager!
  var note = Data("empty".utf8)
  let characteristic = CBMutableCharacteristic(
    type: noteID, properties: [.read, .write, .notify], value: nil, permissions: [.readable, .writeable])
  var channel: CBL2CAPChannel?
  var waiting = [UInt8]()

  func start() { manager = CBPeripheralManager(delegate: self, queue: nil) }

  func tell() {
    if manager.updateValue(note, for: characteristic, onSubscribedCentrals: nil) == false {
      print("told later")
    }
  }
}

extension Device: CBPeripheralManagerDelegate {
  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    if peripheral.state == .poweredOn {
      peripheral.publishL2CAPChannel(withEncryption: false)
    } else {
      print("Bluetooth is \(peripheral.state.label)")
      exit(1)
    }
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: Error?
  ) {
    var psm = PSM.littleEndian
    let value = Data(bytes: &psm, count: MemoryLayout<CBL2CAPPSM>.size)
    let service = CBMutableService(type: notebookID, primary: true)
    service.characteristics = [
      characteristic,
      CBMutableCharacteristic(type: psmID, properties: .read, value: value, permissions: .readable),
    ]
    peripheral.add(service)
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
    peripheral.startAdvertising([
      CBAdvertisementDataLocalNameKey: "notebook", CBAdvertisementDataServiceUUIDsKey: [service.uuid],
    ])
  }

  func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
    print(error == nil ? "advertising" : "not advertising")
  }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
  ) { print("\(self.characteristic.subscribedCentrals?.count ?? 0) follows the note") }

  func peripheralManager(
    _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
  ) {
    print("nobody follows the note")
    exit(0)
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
    guard request.offset <= note.count else {
      peripheral.respond(to: request, withResult: .invalidOffset)
      return
    }
    request.value = note.subdata(in: request.offset..<note.count)
    peripheral.respond(to: request, withResult: .success)
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
    var whole = Data()
    for request in requests { whole.append(request.value ?? Data()) }
    if whole.count > longestNote {
      peripheral.respond(to: requests[0], withResult: CBATTError.invalidAttributeValueLength)
      return
    }
    note = whole
    peripheral.respond(to: requests[0], withResult: .success)
    tell()
  }

  func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { tell() }

  func peripheralManager(_ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: Error?) {
    self.channel = channel
    let streams: [Stream?] = [channel?.inputStream, channel?.outputStream]
    for stream in streams {
      stream?.delegate = self
      stream?.schedule(in: .main, forMode: .common)
      stream?.open()
    }
  }
}

extension Device: StreamDelegate {
  func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
    if eventCode == .hasBytesAvailable, let input = aStream as? InputStream {
      var buffer = [UInt8](repeating: 0, count: 700)
      let count = input.read(&buffer, maxLength: buffer.count)
      if count > 0 { waiting.append(contentsOf: buffer[0..<count]) }
    }
    guard let output = channel?.outputStream, output.hasSpaceAvailable, !waiting.isEmpty else { return }
    let count = output.write(&waiting, maxLength: waiting.count)
    if count > 0 { waiting.removeFirst(count) }
  }
}
