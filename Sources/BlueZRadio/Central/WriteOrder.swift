/// The order in which requests and writes without response of one link were asked for, kept where the two take different ways.
///
/// bluetoothd fetches values from descriptors and requests from the bus, in no fixed order. So a request takes its place as it is asked for: it waits until
/// every value before it is with the daemon, and values after it wait until it is with the daemon itself. Neither overtakes the other then, and a program that
/// never stops writing does not keep its own requests from being sent.
struct WriteOrder: Sendable, Hashable {
  /// A place in the order.
  struct Place: Sendable, Hashable, Comparable {
    fileprivate let number: UInt64

    static func < (left: Place, right: Place) -> Bool { left.number < right.number }
  }

  private var last: UInt64 = 0
  /// Requests that the daemon has not got, in their order.
  private var requests: [Place] = []

  /// The place of a value that is accepted now.
  mutating func addValue() -> Place {
    last += 1
    return Place(number: last)
  }

  /// The place of a request that is asked for now; ``pass(_:)`` has to follow.
  mutating func addRequest() -> Place {
    let place = addValue()
    requests.append(place)
    return place
  }

  /// A request is with the daemon, or never will be. Without effect where that was said before.
  mutating func pass(_ request: Place) { requests.removeAll { $0 == request } }

  /// Whether a value may go to the daemon: no request before it waits.
  func mayLeave(_ value: Place) -> Bool { requests.first.map { value < $0 } ?? true }
}
