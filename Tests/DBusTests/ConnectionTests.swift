import ChildProcess
import Foundation
import PrivateBus
import Testing

@testable import DBus

@Suite("Connections", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct ConnectionTests {
  @Test("A connection has a unique name, and closing ends it once")
  func lifetime() async throws {
    let bus = try await PrivateBus()
    let connection = try await bus.connect()
    #expect(DBusName.isUnique(connection.uniqueName))
    let ends = Inbox<DBusError>()
    connection.whenEnded { ends.put($0) }
    await connection.close()
    #expect(try await ends.next().kind == .disconnected)
    await connection.close()
    connection.whenEnded { ends.put($0) }
    #expect(try await ends.next().kind == .disconnected)
    let late = await failure {
      try await connection.call(
        .call(destination: DBusWellKnown.bus, path: DBusWellKnown.busPath, interface: nil, member: "GetId"))
    }
    #expect(late?.kind == .disconnected)
  }

  @Test("The last reference closes the connection: the bus sees it go")
  func lastReference() async throws {
    let bus = try await PrivateBus()
    let watcher = try await bus.connect()
    let owners = Inbox<String?>()
    var connection: DBusConnection? = try await bus.connect()
    let name = try #require(connection?.uniqueName)
    let subscription = try await watcher.followOwner(of: name) { owners.put($0) }
    #expect(try await owners.next() == name)
    connection = nil
    #expect(try await owners.next() == nil)
    withExtendedLifetime((subscription, connection)) {}
  }

  @Test("What was sent right before closing arrives")
  func closingFlushes() async throws {
    let bus = try await PrivateBus()
    let receiver = try await bus.connect()
    let numbers = Inbox<UInt32>()
    let subscription = try await receiver.subscribe(to: MatchRule(interface: "a.b")) { message in
      if let (number, _) = try? message.read(UInt32.self, [UInt8].self) { numbers.put(number) }
    }
    let sender = try await bus.connect()
    let block = [UInt8](repeating: 7, count: 100_000)
    for number in 0..<50 as Range<UInt32> {
      try await sender.send(
        .signal(path: "/a", interface: "a.b", member: "S", body: [.uint32(number), .bytes(block)]))
    }
    await sender.close()
    #expect(try await numbers.next(50) == Array(0..<50))
    withExtendedLifetime(subscription) {}
  }

  @Test(
    "No bus there",
    arguments: [
      "unix:path=/nonexistent/bus", "nonsense", "", "unix:", "unix:path=/tmp;;", "a\0b", "unix:path=%zz",
    ])
  func nothingThere(_ address: String) async {
    let error = await failure { try await DBusConnection.open(.address(address)) }
    #expect(error != nil)
    #expect(error?.name.isEmpty == false)
  }

  @Test("Addresses come from the environment")
  func environment() throws {
    #expect(try DBusAddress.system.text(environment: [:]).hasPrefix("unix:path=/"))
    #expect(try DBusAddress.system.text(environment: ["DBUS_SYSTEM_BUS_ADDRESS": "x:"]) == "x:")
    #expect(try DBusAddress.session.text(environment: ["DBUS_SESSION_BUS_ADDRESS": "y:"]) == "y:")
    #expect(
      try DBusAddress.session.text(environment: ["XDG_RUNTIME_DIR": "/run/a b,ü"])
        == "unix:path=/run/a%20b%2c%c3%bc/bus")
    let error = #expect(throws: DBusError.self) { try DBusAddress.session.text(environment: [:]) }
    #expect(error?.name == DBusErrorName.badAddress)
  }

  @Test("A bus that is killed ends everything that waits, with an error")
  func busKilled() async throws {
    let bus = try await PrivateBus()
    let connection = try await bus.connect()
    let peer = try await bus.connect()
    let arrived = Inbox<DBusInvocation>()
    let export = try await peer.export(
      [DBusInterface("a.b", methods: [DBusMethod("Wait") { arrived.put($0) }])], at: "/a")
    let stream = try await connection.signals(MatchRule(interface: "a.b"))
    let name = peer.uniqueName
    let ends = Inbox<DBusError>()
    connection.whenEnded { ends.put($0) }
    // Invocations that are let go are answered, so they are kept until the bus is dead.
    var unanswered: [DBusInvocation] = []
    try await withThrowingTaskGroup(of: DBusError?.self) { group in
      for _ in 0..<100 {
        group.addTask {
          await failure {
            try await connection.call(
              .call(destination: name, path: "/a", interface: "a.b", member: "Wait"), timeLimit: nil)
          }
        }
      }
      unanswered = try await arrived.next(100)
      bus.kill()
      for try await error in group { #expect(error?.kind == .disconnected) }
    }
    let ended = await failure { for try await _ in stream {} }
    #expect(ended?.kind == .disconnected)
    #expect(try await ends.next().kind == .disconnected)
    let error = await failure {
      try await connection.send(.signal(path: "/a", interface: "a.b", member: "S"))
    }
    #expect(error?.kind == .disconnected)
    withExtendedLifetime((export, unanswered)) {}
  }

  @Test("A bus that does not read costs bounded memory, and no call waits for ever")
  func busStopped() async throws {
    let bus = try await PrivateBus()
    var limits = DBusLimits()
    limits.outgoingOctets = 4 << 20
    limits.closing = .milliseconds(1)
    let connection = try await bus.connect(limits: limits)
    bus.stop()
    let block = [UInt8](repeating: 0, count: 1 << 20)
    var sent = 0
    let error = await failure {
      while sent < 64 {
        try await connection.send(.signal(path: "/a", interface: "a.b", member: "S", body: [.bytes(block)]))
        sent += 1
      }
    }
    #expect(error?.name == DBusErrorName.limitsExceeded)
    #expect((4...16).contains(sent))
    await connection.close()
  }

  @Test(
    "A server that answers nonsense, or goes at once, is an error",
    arguments: ["", "HELLO\r\n", "OK\r\nl\u{1}\u{2}"])
  func nonsense(_ answer: String) async throws {
    let server = try NonsenseServer(answer)
    let error = await failure { try await DBusConnection.open(.address("unix:path=\(server.path)")) }
    #expect(error != nil)
  }

  @Test("A server that says nothing runs into the time limit")
  func silence() async throws {
    let server = try NonsenseServer(nil)
    let clock = ManualClock()
    let opening = Task {
      await failure {
        try await DBusConnection.open(
          .address("unix:path=\(server.path)"), clock: clock, timeLimit: .seconds(3))
      }
    }
    await clock.waitForTimer()
    clock.advance(by: .seconds(3))
    #expect(await opening.value?.kind == .timedOut)
  }
}
