import Dispatch
import Locking
import Foundation
import Glibc
import Radio
import TestSupport
import Testing

@testable import VirtualRadio

/// A directory for one test, and radios in it as if each were a process.
final class AirFolder: Sendable {
  private let folder = TemporaryFolder()
  let clock: VirtualClock

  /// Where the air is to be; nothing is there yet.
  var path: String { folder.path("air") }

  init(_ mode: VirtualClock.Mode = .unpaced) { clock = VirtualClock(mode) }

  func radio(
    _ name: String, link: LinkParameters = LinkParameters(), faults: String = ""
  ) throws -> VirtualRadio {
    try VirtualRadio(
      directory: path, name: name, clock: clock, link: link, faults: FaultPlan(parsing: faults))
  }
}

/// Remembers events and lets a test wait for one.
final class NewsLog<Event: Sendable>: Sendable {
  private let events = PosixMutex<[Event]>([])
  private let news = DispatchSemaphore(value: 0)

  func append(_ event: Event) {
    events.withLock { $0.append(event) }
    news.signal()
  }

  var all: [Event] { events.withLock(\.self) }

  /// Waits a while for an event that may come or not.
  func waits(after start: Int, within limit: DispatchTimeInterval, _ isIt: (Event) -> Bool) -> Bool {
    let deadline = DispatchTime.now() + limit
    while !all.dropFirst(start).contains(where: isIt) {
      if news.wait(timeout: deadline) == .timedOut { return all.dropFirst(start).contains(where: isIt) }
    }
    return true
  }

  /// Waits for an event of which `find` makes something.
  func expect<Found>(
    _ what: String, after start: Int = 0, sourceLocation: SourceLocation = #_sourceLocation,
    _ find: (Event) -> Found?
  ) throws -> Found {
    let deadline = DispatchTime.now() + .seconds(600)
    while true {
      if let found = all.dropFirst(start).lazy.compactMap(find).first { return found }
      if news.wait(timeout: deadline) == .timedOut { break }
    }
    return try #require(nil, "\(what) did not happen: \(all)", sourceLocation: sourceLocation)
  }
}

/// A peripheral that advertises one service with one characteristic to write to.
final class TestDevice: Sendable {
  static let service = BluetoothUUID(UInt16(0xFFF0))
  let radio: VirtualRadio
  let client: any PeripheralRadio
  let log = NewsLog<PeripheralEvent>()

  init(_ radio: VirtualRadio) {
    self.radio = radio
    client = radio.makePeripheral { [log] in log.append($0) }
    client.addService(
      LocalService(
        id: LocalServiceID(1), uuid: Self.service, isPrimary: true,
        characteristics: [
          LocalCharacteristic(
            id: LocalCharacteristicID(1), uuid: BluetoothUUID(UInt16(0xFFF1)),
            properties: [.writeWithoutResponse, .notify], permissions: [.write])
        ]))
    client.startAdvertising(Advertisement(localName: radio.name, services: [Self.service]))
  }

  func started() throws -> Result<Void, RadioError> {
    try log.expect("start of advertising") { event in
      if case .advertisingStarted(let result) = event { result } else { nil }
    }
  }

  /// The values that were written, in order.
  var written: [Data] {
    log.all.flatMap { event -> [Data] in
      if case .write(_, _, let writes, _) = event { writes.map(\.value) } else { [] }
    }
  }
}

/// A central.
final class TestPhone: Sendable {
  let radio: VirtualRadio
  let client: any CentralRadio
  let log = NewsLog<CentralEvent>()

  init(_ radio: VirtualRadio) {
    self.radio = radio
    client = radio.makeCentral { [log] in log.append($0) }
  }

  func sighting(of peer: PeerID, after start: Int = 0) throws -> Sighting {
    try log.expect("sighting of \(peer)", after: start) { event in
      if case .discovered(let sighting) = event, sighting.peer == peer { sighting } else { nil }
    }
  }

  func connect(_ peer: PeerID) throws {
    let start = log.all.count
    client.connect(peer)
    try waitForLink(to: peer, after: start)
  }

  func waitForLink(to peer: PeerID, after start: Int = 0) throws {
    try log.expect("link", after: start) { event in
      if case .connected(peer, _) = event { () } else { nil }
    }
  }

  func waitForEnd(of peer: PeerID, after start: Int = 0) throws -> RadioError? {
    try log.expect("end of the link", after: start) { event -> RadioError?? in
      if case .disconnected(peer, let error, _) = event { .some(error) } else { nil }
    }
  }

  /// Handles of the characteristic to write to.
  func findCharacteristic(of peer: PeerID) throws -> RemoteCharacteristic {
    client.request(.discoverServices(nil), of: peer, id: RequestID(1))
    let services = try log.expect("services") { event -> [RemoteService]? in
      if case .completed(RequestID(1), _, .success(.services(let services))) = event { services } else { nil }
    }
    let service = try #require(services.first { $0.uuid == TestDevice.service })
    client.request(.discoverCharacteristics(of: service, nil), of: peer, id: RequestID(2))
    let all = try log.expect("characteristics") { event -> [RemoteCharacteristic]? in
      if case .completed(RequestID(2), _, .success(.characteristics(let all))) = event { all } else { nil }
    }
    return try #require(all.first)
  }
}

/// A process that speaks to a socket of the air by hand, well or badly.
final class RawVisitor {
  private let socket: FileDescriptor
  private var decoder = AirMessageDecoder()

  init(_ folder: AirFolder, to name: String) throws {
    socket = try AirDirectory(path: folder.path).connect(to: AirFileName(peripheral: name))
  }

  /// Takes a connection that somebody else has made.
  init(accepted socket: FileDescriptor) { self.socket = socket }

  func send(_ bytes: [UInt8]) { _ = try? UnixSocket.send(bytes[...], to: socket) }

  func send(_ message: AirMessage) {
    var bytes: [UInt8] = []
    message.encode(into: &bytes)
    send(bytes)
  }

  func greet(as name: String) {
    send(.hello(version: AirMessage.version, name: name))
  }

  /// The next message of a kind; nil: the other side has closed before.
  func receive<Found>(_ find: (AirMessage) -> Found?) throws -> Found? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      while let message = try decoder.next() {
        if let found = find(message) { return found }
      }
      try #require(isReadable(socket), "the other side says nothing")
      guard let count = try? UnixSocket.receive(into: &buffer, from: socket) else { return nil }
      guard count > 0 else { return nil }
      decoder.append(buffer[..<count])
    }
  }

  /// Waits until the other side closes.
  func waitForEnd() throws {
    let never: Bool? = try receive { _ in nil }
    #expect(never == nil)
  }
}

/// Waits until a socket has something to read, or somebody to accept.
func isReadable(_ socket: FileDescriptor) -> Bool {
  var poll = pollfd(fd: socket.raw, events: Int16(POLLIN), revents: 0)
  return unsafe Glibc.poll(&poll, 1, 600_000) == 1
}
