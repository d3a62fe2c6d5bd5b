internal import Locking
public import Foundation
internal import Radio

extension CBPeripheral {
  /// Asks for the signal strength of the link.
  public func readRSSI() { ask(.readRSSI, .readRSSI, command: "readRSSI") }

  /// Discovers primary services of the given types; nil: all.
  public func discoverServices(_ serviceUUIDs: [CBUUID]?) {
    ask(.discoverServices, .discoverServices(Self.filter(serviceUUIDs)), command: "discoverServices")
  }

  /// Discovers the services that `service` includes.
  public func discoverIncludedServices(_ includedServiceUUIDs: [CBUUID]?, for service: CBService) {
    guard let remote = remote(service.remote, "discoverIncludedServices") else { return }
    ask(
      .discoverIncludedServices(service),
      .discoverIncludedServices(of: remote, Self.filter(includedServiceUUIDs)), of: service,
      command: "discoverIncludedServices")
  }

  /// Discovers the characteristics of `service`.
  public func discoverCharacteristics(_ characteristicUUIDs: [CBUUID]?, for service: CBService) {
    guard let remote = remote(service.remote, "discoverCharacteristics") else { return }
    ask(
      .discoverCharacteristics(service),
      .discoverCharacteristics(of: remote, Self.filter(characteristicUUIDs)), of: service,
      command: "discoverCharacteristics")
  }

  /// Discovers the descriptors of `characteristic`.
  public func discoverDescriptors(for characteristic: CBCharacteristic) {
    guard let remote = remote(characteristic.remote, "discoverDescriptors") else { return }
    ask(
      .discoverDescriptors(characteristic), .discoverDescriptors(of: remote), of: characteristic,
      command: "discoverDescriptors")
  }

  /// Reads the whole value of `characteristic`.
  public func readValue(for characteristic: CBCharacteristic) {
    guard let remote = remote(characteristic.remote, "readValue") else { return }
    ask(.read(characteristic), .read(remote.handle), of: characteristic, command: "readValue")
  }

  /// Reads the whole value of `descriptor`.
  public func readValue(for descriptor: CBDescriptor) {
    guard let remote = remote(descriptor.remote, "readValue") else { return }
    ask(.readDescriptor(descriptor), .read(remote.handle), of: descriptor, command: "readValue")
  }

  /// Writes `data` to `characteristic`.
  ///
  /// With response: up to 512 octets, each write answered by one
  /// ``CBPeripheralDelegate/peripheral(_:didWriteValueFor:error:)-(_,CBCharacteristic,_)``. Without response: up to ``maximumWriteValueLength(for:)``,
  /// while ``canSendWriteWithoutResponse`` is true; what is longer, or comes while it is false, is dropped.
  public func writeValue(
    _ data: Data, for characteristic: CBCharacteristic, type: CBCharacteristicWriteType
  ) {
    guard let remote = remote(characteristic.remote, "writeValue") else { return }
    switch type {
    case .withResponse:
      let tooLong = data.count > ATT.maximumValueLength
      ask(
        .write(characteristic), .write(remote.handle, data), of: characteristic,
        failure: tooLong ? .invalidAttributeValueLength : nil, command: "writeValue")
    case .withoutResponse:
      send(data, to: characteristic, remote)
    }
  }

  /// Writes `data` to `descriptor`; a client configuration is written by ``setNotifyValue(_:for:)`` only.
  public func writeValue(_ data: Data, for descriptor: CBDescriptor) {
    guard let remote = remote(descriptor.remote, "writeValue") else { return }
    guard remote.uuid != BluetoothUUID(0x2902 as UInt16) else {
      core.log.misuse(
        self, "writes a client characteristic configuration in setNotifyValue only; writeValue was dropped")
      return
    }
    let tooLong = data.count > ATT.maximumValueLength
    ask(
      .writeDescriptor(descriptor), .write(remote.handle, data), of: descriptor,
      failure: tooLong ? .invalidAttributeValueLength : nil, command: "writeValue")
  }

  /// Subscribes to `characteristic` or unsubscribes; notifications are preferred to indications. It lasts as long as the link.
  public func setNotifyValue(_ enabled: Bool, for characteristic: CBCharacteristic) {
    guard let remote = remote(characteristic.remote, "setNotifyValue") else { return }
    let best: NotifyMode? =
      if remote.properties.contains(.notify) {
        .notify
      } else if remote.properties.contains(.indicate) {
        .indicate
      } else {
        nil
      }
    let mode = enabled ? best ?? .notify : .none
    ask(
      .setNotify(characteristic, mode), .setNotify(remote, mode), of: characteristic,
      failure: best == nil ? .requestNotSupported : nil, command: "setNotifyValue")
  }

  /// Opens an L2CAP channel to a PSM of the peer.
  public func openL2CAPChannel(_ PSM: CBL2CAPPSM) {
    let dropped = session.withLock { session -> Bool in
      guard let client = session.openClient,
        let number = session.link?.requests.append(.openChannel)
      else { return true }
      client.openChannel(psm: PSM, of: peer, id: requestID(number))
      return false
    }
    if dropped { logNotConnected("openL2CAPChannel") }
  }

  // MARK: Behind them

  /// Queues a request, or its failure, and hands it to the radio; drops it with a line in the log where it cannot be meant.
  ///
  /// The radio is called with the lock held so that its order is the order of the queue; by its contract it returns at once and calls nobody back.
  private func ask(
    _ request: PeripheralSession.Request, _ command: GATTRequest, of attribute: CBAttribute? = nil,
    failure: CBATTError.Code? = nil, command name: String
  ) {
    enum Outcome { case asked, failed, notConnected, stale }
    let outcome = session.withLock { session -> Outcome in
      guard let link = session.link, link.takesCommands else { return .notConnected }
      if let attribute, !attribute.isValid(on: link.database.link) { return .stale }
      if let failure {
        session.link?.requests.append(request, failedWith: CBATTError(failure))
        return .failed
      }
      if let number = session.link?.requests.append(request) {
        link.client.request(command, of: peer, id: requestID(number))
      }
      return .asked
    }
    switch outcome {
    case .asked: break
    case .failed: core.inbox.post(.requestFailed(peer))
    case .notConnected: logNotConnected(name)
    case .stale: logStale(name)
    }
  }

  private func send(_ data: Data, to characteristic: CBCharacteristic, _ remote: RemoteCharacteristic) {
    enum Target {
      case client(any CentralRadio)
      case notConnected, stale
    }
    let target = session.withLock { session -> Target in
      guard let client = session.openClient else { return .notConnected }
      return characteristic.isValid(on: session.link?.database.link) ? .client(client) : .stale
    }
    switch target {
    case .notConnected: logNotConnected("writeValue")
    case .stale: logStale("writeValue")
    case .client(let client):
      guard remote.properties.contains(.writeWithoutResponse) else {
        core.log.misuse(
          self, "has no writes without response to characteristic \(remote.uuid); the value was dropped")
        return
      }
      switch client.writeWithoutResponse(data, to: remote.handle, of: peer) {
      case .accepted: break
      case .notReady: logLoss()
      case .tooLong(let limit):
        core.log.misuse(
          self,
          "takes at most \(limit) octets in a write without response, not \(data.count); the value was dropped"
        )
      case .notConnected: logNotConnected("writeValue")
      }
    }
  }

  func requestID(_ number: UInt32) -> RequestID {
    RequestID(UInt64(ordinal) << 32 | UInt64(number))
  }

  private static func filter(_ uuids: [CBUUID]?) -> [BluetoothUUID]? {
    guard let uuids, !uuids.isEmpty else { return nil }
    return uuids.map(\.value)
  }

  /// Unwraps what a discovered attribute has and a local one lacks.
  private func remote<Remote>(_ remote: Remote?, _ command: String) -> Remote? {
    if remote == nil { core.log.misuse(self, "has no local attributes; \(command) was dropped") }
    return remote
  }

  private func logNotConnected(_ command: String) {
    core.log.misuse(self, "accepts commands only while it is connected; \(command) was dropped")
  }

  private func logStale(_ command: String) {
    core.log.misuse(
      self, "does not have that attribute (any more): it is of another device or link; \(command) was dropped"
    )
  }

  /// Once for each time that room ran out.
  private func logLoss() {
    let isFirst = session.withLock { session in
      defer { session.link?.hasToldLoss = true }
      return session.link?.hasToldLoss == false
    }
    if isFirst {
      core.log.misuse(
        self,
        "had no room for a write without response; values are dropped until it is ready: look at canSendWriteWithoutResponse"
      )
    }
  }
}
