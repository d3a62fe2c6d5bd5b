internal import Foundation
internal import Radio

/// How a program wants a connection to be made and kept.
struct ConnectOptions: Sendable {
  /// Whether to connect again by itself where a link is lost.
  var reconnects = false
  /// Not before this instant of the radio's clock; nil: at once.
  var start: Duration?
  /// What was given as numbers or Booleans, by its keys.
  private(set) var given: [String: Double] = [:]

  init() {}

  /// Reads the options of a connect call made at `now`.
  init(_ options: [String: Any]?, now: Duration) {
    reconnects = OptionValue.bool(options?[CBConnectPeripheralOptionEnableAutoReconnect])
    let delay = OptionValue.seconds(options?[CBConnectPeripheralOptionStartDelayKey])
    if delay > .zero { start = now + delay }
    given = (options ?? [:]).compactMapValues { OptionValue.number($0) }
  }

  /// The options of a former run's connection; its delay is not repeated.
  init(restoring given: [String: Double]) {
    self.init(given.mapValues { NSNumber(value: $0) }, now: .zero)
    start = nil
  }

  /// Options that ask for what Linux does not have, with its name.
  static let absent = [
    (CBConnectPeripheralOptionEnableTransportBridgingKey, "bridging to Bluetooth Classic profiles"),
    (CBConnectPeripheralOptionRequiresANCS, "the Apple Notification Center Service"),
  ]
}
