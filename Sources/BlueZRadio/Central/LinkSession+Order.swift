internal import DBus
internal import Radio
internal import Readiness

/// A request that waits until the daemon has the values that were accepted before it.
struct HeldBack {
  let place: WriteGate.Place
  let body: @Sendable () -> Void
  var limit: ScheduledWork?
  /// Tell when the daemon has read of a descriptor.
  var watched: [(socket: AcquiredSocket, source: ReadinessSource)] = []
}

/// Requests keep their place among writes without response.
extension LinkSession {
  /// bluetoothd reads its ends of descriptors as soon as it runs at all.
  private static let holdLimit = Duration.seconds(30)
  /// How often is looked where the system has no descriptor left that could tell.
  private static let lookInterval = Duration.milliseconds(5)

  /// The place of a request: the one that it was given as it was asked for, as long as it is one among the values of this link.
  func takePlace(_ place: WriteGate.Place?, of request: Request) -> WriteGate.Place? {
    if let place, place.gate === gate { return place }
    if let place { place.gate.pass(place) }
    guard case .gatt(let request) = request, request.isOnAir else { return nil }
    return gate.addRequest()
  }

  /// Calls `body` once the daemon has all values before a request. One that does not fetch them for long is not to be trusted with the request either:
  /// the link is given up.
  func holdBack(_ place: WriteGate.Place, _ body: @escaping @Sendable () -> Void) {
    heldBack = HeldBack(place: place, body: body)
    lookAtHeldBack()
    guard heldBack != nil else { return }
    heldBack?.limit = host.schedule(after: Self.holdLimit) { [weak self] in
      guard let self, !isOver, heldBack?.place.number == place.number else { return }
      fail(RadioError(.timeout, "bluetoothd does not fetch values that were written without response"))
    }
  }

  /// Looks whether a request's turn has come.
  func lookAtHeldBack() {
    guard !isOver, let held = heldBack else { return }
    switch gate.rest(before: held.place) {
    case .nothing:
      endHoldingBack()
      held.body()
    case .waiting:
      // It is looked again once they were moved.
      break
    case .unread(let sockets):
      for socket in sockets where !held.watched.contains(where: { $0.socket === socket }) {
        let look = host.whileAlive { [weak self] in self?.lookAtHeldBack() }
        guard let source = socket.whenRead(central.monitor, look) else {
          return host.after(Self.lookInterval) { [weak self] in self?.lookAtHeldBack() }
        }
        heldBack?.watched.append((socket, source))
      }
    }
  }

  func endHoldingBack() {
    heldBack?.limit?.cancel()
    heldBack = nil
  }

  /// The running operation was handed to the daemon: values after it may follow once the daemon, which takes calls one after the other, answers the next.
  func passOnceWithDaemon() {
    guard let place = operations.running?.place else { return }
    guard gate.isUsed else { return gate.pass(place) }
    host.call(path, DBusWellKnown.properties, "Get", [.string(BlueZ.device), .string("Connected")]) {
      [gate] _ in gate.pass(place)
    }
  }
}

extension GATTRequest {
  /// Whether the peer is asked, so that it keeps an order with writes without response.
  var isOnAir: Bool {
    switch self {
    case .read, .write, .setNotify: true
    case .discoverServices, .discoverIncludedServices, .discoverCharacteristics, .discoverDescriptors,
      .readRSSI:
      false
    }
  }
}
