internal import BulkTransfer
internal import VirtualRadio

/// Which way, and by what, a measurement sends.
struct BenchMode: Hashable, Sendable {
  /// What carries the data.
  enum Via: String, CaseIterable, Sendable {
    case gatt, l2cap
    case gattResponse = "gatt-response"
  }

  enum Direction: String, CaseIterable, Sendable {
    case toDevice = "to-device"
    case toHost = "to-host"
  }

  let via: Via
  let direction: Direction

  /// A transfer as `push` makes it; nil where the link alone is measured.
  var carrier: CarrierKind? {
    switch (direction, via) {
    case (.toDevice, .gatt): .gatt
    case (.toDevice, .l2cap): .l2cap
    default: nil
    }
  }

  /// What is done where the link alone is measured.
  func test(octets: Int) -> LinkTest.Kind {
    switch (direction, via) {
    case (.toHost, .gatt), (.toHost, .gattResponse): .notifications(octets: octets)
    case (.toHost, .l2cap): .channel(octets: octets)
    case (.toDevice, _): .writes(octets: octets)
    }
  }

  /// What the data is on the link.
  var traffic: LinkCeiling.Traffic {
    switch (via, direction) {
    case (.gatt, .toDevice): .commands
    case (.gattResponse, _): .requests
    case (.gatt, .toHost): .notifications
    case (.l2cap, _): .channel
    }
  }

  /// For people.
  var title: String {
    let words =
      switch via {
      case .gatt: "GATT"
      case .l2cap: "L2CAP"
      case .gattResponse: "GATT, writes with response"
      }
    return direction == .toHost ? "\(words), to the host" : words
  }

  /// What goes there and back in a round trip.
  var roundTrip: LinkTest.RoundTrip {
    switch via {
    case .gatt: .values
    case .l2cap: .channel
    case .gattResponse: .response
    }
  }

  /// The least time of a round trip by the rules of a link: what arrives in one event is answered in the next, and the answer's own answer leaves in the
  /// event after that.
  func fastestRoundTrip(on link: LinkParameters) -> Duration {
    let octets = LinkTest.roundTripOctets
    let flow =
      via == .l2cap
      ? LinkCeiling(link).channel(sdu: octets) : LinkCeiling(link).writesWithoutResponse(valueLength: octets)
    guard flow.acknowledged > 0 else { return .zero }
    return .microseconds((Double(flow.payload) / flow.acknowledged * 1e6).rounded())
  }
}

/// What is measured, and can be told, tabulated and drawn.
protocol BenchMeasurement: Sendable {
  var mode: BenchMode { get }
  /// The simulated link; nil where it is a real one.
  var link: LinkParameters? { get }
  /// What a sweep has varied, in its order.
  var varied: [(key: String, value: String)] { get set }
  var report: Report { get }

  /// A table for other programs (RFC 4180), one row each; times are seconds.
  static func csv(_ results: [Self]) -> String
  static func svg(_ results: [Self]) -> String
}

/// Comma-separated values (RFC 4180).
enum Table {
  static func text(_ rows: [[String]]) -> String {
    rows.map { $0.map(field).joined(separator: ",") + "\r\n" }.joined()
  }

  private static func field(_ text: String) -> String {
    text.contains { ",\"\r\n".contains($0) } ? "\"\(text.replacing("\"", with: "\"\""))\"" : text
  }
}
