internal import Locking
internal import Foundation
internal import Radio

/// What the commands of a peripheral do.
extension CBPeripheral {
  /// Queues a request, or its failure, and hands it to the radio; drops it with a line in the log where it cannot be meant.
  ///
  /// The radio is called with the lock held so that its order is the order of the queue; by its contract it returns at once and calls nobody back.
  func ask(
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

  func send(_ data: Data, to characteristic: CBCharacteristic, _ remote: RemoteCharacteristic) {
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
      // The radio knows already what the program will be told next: no mistake of the program's.
      case .notConnected, .invalidHandle: break
      }
    }
  }

  func requestID(_ number: UInt32) -> RequestID {
    RequestID(UInt64(ordinal) << 32 | UInt64(number))
  }

  static func filter(_ uuids: [CBUUID]?) -> [BluetoothUUID]? {
    guard let uuids, !uuids.isEmpty else { return nil }
    return uuids.map(\.value)
  }

  /// Unwraps what a discovered attribute has and a local one lacks.
  func remote<Remote>(_ remote: Remote?, _ command: String) -> Remote? {
    if remote == nil { core.log.misuse(self, "has no local attributes; \(command) was dropped") }
    return remote
  }

  func logNotConnected(_ command: String) {
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
