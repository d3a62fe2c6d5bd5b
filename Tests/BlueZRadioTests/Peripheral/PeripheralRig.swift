import DBus
import Foundation
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

/// A peripheral client on a bus with ``FakeManagers``.
final class PeripheralRig: Sendable {
  static let value = LocalCharacteristicID(1)
  static let pushes = LocalCharacteristicID(2)
  static let central = FakeManagers.central

  let bus: PrivateBus
  let daemon: FakeManagers
  let clock = HandClock()
  let sockets = UnixSockets()
  let events = Arrivals<PeripheralEvent>()
  let notes = Arrivals<String>()
  let peripheral: BlueZPeripheral
  private let host: BlueZHost

  init() async throws {
    bus = try await PrivateBus()
    daemon = try await FakeManagers(bus)
    host = BlueZHost(adapter: nil, bus: bus.address, clock: clock) { [notes] note in
      notes.put(note)
    }
    peripheral = BlueZPeripheral(host, sockets: sockets) { [events] in events.put($0) }
    try await expectState(.poweredOn)
  }

  func expectState(_ state: AdapterState, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    try await events.first(sourceLocation: sourceLocation) { event in
      if case .adapterStateChanged(state) = event { () } else { nil }
    }
  }

  /// Expects that state as the next event of all.
  func expectNext(_ state: AdapterState, sourceLocation: SourceLocation = #_sourceLocation) async {
    let event = try? await events.next(sourceLocation: sourceLocation)
    guard case .adapterStateChanged(state)? = event else {
      Issue.record("there was another event: \(String(describing: event))", sourceLocation: sourceLocation)
      return
    }
  }

  /// A published service: its application, and what it has told the daemon of it.
  struct Published: Sendable {
    let client: String
    let root: ObjectPath
    let objects: [ObjectPath: DBusProperties]

    /// The paths of its characteristics, in the order of attributes.
    var characteristics: [ObjectPath] {
      objects.filter { $0.value[BlueZ.gattCharacteristic] != nil }.keys.sorted()
    }
  }

  func publish(
    _ service: LocalService, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Published {
    peripheral.addService(service)
    let call = try await daemon.calls.next(sourceLocation: sourceLocation)
    #expect(call.member == "RegisterApplication", sourceLocation: sourceLocation)
    let objects = try await daemon.bus.managedObjects(at: call.path, destination: call.sender)
    try await events.first(sourceLocation: sourceLocation) { event in
      if case .serviceAdded(service.id, .success) = event { () } else { nil }
    }
    return Published(client: call.sender, root: call.path, objects: objects)
  }

  /// Whether nothing has happened, after everything sent so far was handled.
  func expectNothing(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let probe = LocalServiceID(99_999)
    peripheral.addService(.plain(99_999, includes: [probe]))
    let event = try await events.next(sourceLocation: sourceLocation)
    guard case .serviceAdded(probe, .failure) = event else {
      Issue.record("there was an event: \(event)", sourceLocation: sourceLocation)
      return
    }
  }

  /// The next read of ``value``, with its offset.
  func read() async throws -> (ServerRequestID, Int) {
    try await events.first { event in
      if case .read(let id, Self.central, Self.value, let offset) = event { (id, offset) } else { nil }
    }
  }

  /// The next write to ``value``, and whether it needs an answer.
  func written() async throws -> (ServerRequestID, ServerWrite, Bool) {
    try await events.first { event in
      guard case .write(let id, Self.central, let writes, let needsResponse) = event else { return nil }
      return writes.first.map { (id, $0, needsResponse) }
    }
  }

  /// Publishes ``pushes`` and has the central subscribe to it.
  func subscribed(_ properties: GATTProperties = .notify) async throws -> Published {
    let published = try await publish(.plain(7, [.plain(2, properties, [])]))
    try await daemon.subscribe(published.characteristics[0], of: published.client)
    try await events.first { event in
      if case .subscribed(Self.central, Self.pushes) = event { () } else { nil }
    }
    try await daemon.listen()
    return published
  }
}
