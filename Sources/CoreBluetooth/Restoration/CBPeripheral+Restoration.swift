internal import Foundation
internal import Locking
internal import Radio

extension CBPeripheral {
  /// Takes what a former run knew of the device.
  func restore(_ services: [SavedCentral.Service]) {
    let database = RemoteDatabase(restoring: services, of: self)
    let notifying = database.notifying
    session.withLock { session in
      session.remembered = database
      session.resubscriptions = notifying
    }
  }

  /// What is known of the device, for a file.
  var savedServices: [SavedCentral.Service]? {
    session.withLock { $0.link?.database ?? $0.remembered }?.saved
  }

  /// Asks for the subscriptions of a former run, before the program can ask for anything.
  func resubscribe(_ session: inout PeripheralSession) {
    for characteristic in session.resubscriptions {
      guard let link = session.link, let remote = characteristic.remote,
        characteristic.isValid(on: link.database.link),
        let number = session.link?.requests.append(.resubscribe(characteristic))
      else { continue }
      let mode: NotifyMode = remote.properties.contains(.notify) ? .notify : .indicate
      link.client.request(.setNotify(remote, mode), of: peer, id: requestID(number))
    }
    session.resubscriptions = []
  }

  /// Sees to it that what a request has brought is saved: a subscription before the program hears of it, a discovery before it hears of
  /// anything after it.
  func saveOutcome(of request: PeripheralSession.Request) {
    switch request {
    case .setNotify:
      core.changed()
      core.saveChanges()
    case .discoverServices, .discoverIncludedServices, .discoverCharacteristics, .discoverDescriptors:
      core.changed()
    case .read, .readDescriptor, .write, .writeDescriptor, .readRSSI, .openChannel, .check, .resubscribe:
      break
    }
  }
}
