internal import Radio

/// A process that has connected to this one's socket: an observer, or the central of a link. Lives under the lock of a ``HostCore``.
final class Visitor: RemoteCentral {
  /// How far the greeting has got.
  enum Phase {
    /// Can transition to: known.
    case arrived
    /// Has said its name. Can transition to: observing, linked.
    case known(String)
    case observing(String)
    /// The central of a link of this identity.
    case linked(String, UInt64)
  }

  let connection: AirConnection
  /// Ends the connection if the greeting takes too long.
  let patience: ScheduledWork
  var phase = Phase.arrived

  init(connection: AirConnection, patience: ScheduledWork) {
    self.connection = connection
    self.patience = patience
  }

  var isObserving: Bool { if case .observing = phase { true } else { false } }

  func show(_ advertisements: [Advertisement], rssi: Int) {
    for advertisement in advertisements {
      connection.send(.advertisement(advertisement, rssi: Int8(clamping: rssi), isConnectable: true))
    }
  }

  /// Closes at once.
  func abandon() {
    patience.cancel()
    connection.close()
  }

  /// Closes when everything is sent.
  func leaveInOrder() {
    patience.cancel()
    connection.closeWhenSent()
  }

  // MARK: The central of a link

  var isCongested: Bool { connection.isCongested }

  func received(_ frame: [UInt8]) { connection.send(.frame(frame)) }

  func completed(_ frames: Int) { connection.send(.completed(UInt32(clamping: frames))) }

  func parametersChanged(_ parameters: LinkParameters) { connection.send(.parameters(parameters)) }

  func mtuChanged(_ mtu: Int) { connection.send(.mtu(UInt16(clamping: mtu))) }

  func ended(_ reason: LinkEnd) {
    connection.send(.ended(reason))
    leaveInOrder()
  }
}
