import Dispatch
import PrivateBus
import Testing

@testable import DBus

@Suite("Signals and names", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct SignalTests {
  private func signal(
    _ number: UInt32, member: String = "S", path: ObjectPath = "/a", to destination: String? = nil
  ) throws -> DBusMessage {
    try .signal(
      path: path, interface: "a.b", member: member, body: [.uint32(number)], destination: destination)
  }

  @Test("In order, to handlers and streams")
  func order() async throws {
    let bus = try await PrivateBus()
    let (sender, receiver) = (try await bus.connect(), try await bus.connect())
    let numbers = Inbox<UInt32>()
    let subscription = try await receiver.subscribe(to: MatchRule(interface: "a.b")) {
      if let number = try? $0.read(UInt32.self) { numbers.put(number) }
    }
    let stream = try await receiver.signals(MatchRule(sender: sender.uniqueName, member: "S"))
    for number in 0..<2000 as Range<UInt32> { try await sender.send(signal(number)) }
    #expect(try await numbers.next(2000) == Array(0..<2000))
    var streamed: [UInt32] = []
    for try await message in stream {
      streamed.append(try message.read(UInt32.self))
      if streamed.count == 2000 { break }
    }
    #expect(streamed == Array(0..<2000))
    withExtendedLifetime(subscription) {}
  }

  @Test("Only what the rule says, only while it holds")
  func rules() async throws {
    let bus = try await PrivateBus()
    let (sender, receiver) = (try await bus.connect(), try await bus.connect())
    let (narrow, wide) = (Inbox<UInt32>(), Inbox<UInt32>())
    let first = try await receiver.subscribe(
      to: MatchRule(pathNamespace: "/a", member: "S", arguments: [:])
    ) {
      if let number = try? $0.read(UInt32.self) { narrow.put(number) }
    }
    let second = try await receiver.subscribe(to: MatchRule(interface: "a.b")) {
      if let number = try? $0.read(UInt32.self) { wide.put(number) }
    }
    try await sender.send(signal(1))
    try await sender.send(signal(2, member: "Other"))
    try await sender.send(signal(3, path: "/ab"))
    try await sender.send(signal(4, path: "/a/b"))
    #expect(try await wide.next(4) == [1, 2, 3, 4])
    #expect(try await narrow.next(2) == [1, 4])
    first.cancel()
    try await sender.send(signal(5))
    #expect(try await wide.next() == 5)
    try await sender.send(signal(6, to: receiver.uniqueName))
    #expect(try await wide.next() == 6)
    let again = try await receiver.subscribe(to: MatchRule(pathNamespace: "/a", member: "S")) {
      if let number = try? $0.read(UInt32.self) { narrow.put(number) }
    }
    try await sender.send(signal(7))
    #expect(try await narrow.next() == 7)
    withExtendedLifetime((second, again)) {}
  }

  @Test("A rule with apostrophes is understood by the bus as it was meant")
  func escaping() async throws {
    let bus = try await PrivateBus()
    let (sender, receiver) = (try await bus.connect(), try await bus.connect())
    let texts = Inbox<String>()
    let wanted = "it's, \\'so',x='y"
    let subscription = try await receiver.subscribe(
      to: MatchRule(interface: "a.b", arguments: [0: .equals(wanted)])
    ) {
      if let text = try? $0.read(String.self) { texts.put(text) }
    }
    for text in ["its", wanted] {
      try await sender.send(.signal(path: "/a", interface: "a.b", member: "S", body: [.string(text)]))
    }
    #expect(try await texts.next() == wanted)
    withExtendedLifetime(subscription) {}
  }

  @Test("A slow reader of a stream gets an error, not a gap")
  func overflow() async throws {
    let bus = try await PrivateBus()
    let (sender, receiver) = (try await bus.connect(), try await bus.connect())
    let stream = try await receiver.signals(MatchRule(interface: "a.b"), buffer: 10)
    let seen = Inbox<UInt32>()
    let subscription = try await receiver.subscribe(to: MatchRule(interface: "a.b")) {
      if let number = try? $0.read(UInt32.self) { seen.put(number) }
    }
    for number in 0..<12 as Range<UInt32> { try await sender.send(signal(number)) }
    _ = try await seen.next(12)
    var numbers: [UInt32] = []
    let error = await failure {
      for try await message in stream { numbers.append(try message.read(UInt32.self)) }
    }
    #expect(numbers == Array(0..<10))
    #expect(error?.name == DBusErrorName.limitsExceeded)
    withExtendedLifetime(subscription) {}
  }

  @Test("A well-known sender is whoever owns the name; others cannot speak as it")
  func wellKnownSender() async throws {
    let bus = try await PrivateBus()
    let (first, second, receiver) = (
      try await bus.connect(), try await bus.connect(), try await bus.connect()
    )
    #expect(try await first.requestName("org.example.Name", .allowReplacement) == .primaryOwner)
    let numbers = Inbox<UInt32>()
    let subscription = try await receiver.subscribe(to: MatchRule(sender: "org.example.Name")) {
      if let number = try? $0.read(UInt32.self) { numbers.put(number) }
    }
    try await second.send(signal(1, to: receiver.uniqueName))
    try await first.send(signal(2, to: receiver.uniqueName))
    #expect(try await numbers.next() == 2)
    #expect(try await second.requestName("org.example.Name", .replaceExisting) == .primaryOwner)
    try await first.send(signal(3, to: receiver.uniqueName))
    try await second.send(signal(4))
    #expect(try await numbers.next() == 4)
    withExtendedLifetime(subscription) {}
  }

  @Test("A name without an owner can be waited for")
  func futureOwner() async throws {
    let bus = try await PrivateBus()
    let (sender, receiver) = (try await bus.connect(), try await bus.connect())
    let numbers = Inbox<UInt32>()
    let both = [
      try await receiver.subscribe(to: MatchRule(sender: "org.example.Later", member: "S")) {
        if let number = try? $0.read(UInt32.self) { numbers.put(number) }
      },
      try await receiver.subscribe(to: MatchRule(sender: "org.example.Later", member: "T")) {
        if let number = try? $0.read(UInt32.self) { numbers.put(number) }
      },
    ]
    _ = try await sender.requestName("org.example.Later")
    try await sender.send(signal(1))
    #expect(try await numbers.next() == 1)
    both[0].cancel()
    // The name is still followed for the other.
    try await sender.send(signal(2, member: "T"))
    #expect(try await numbers.next() == 2)
    withExtendedLifetime(both) {}
  }

  @Test("Requests for names, their answers, and loss")
  func names() async throws {
    let bus = try await PrivateBus()
    let (first, second) = (try await bus.connect(), try await bus.connect())
    let name = "org.example.Name"
    #expect(try await first.owner(of: name) == nil)
    #expect(try await first.requestName(name, .allowReplacement) == .primaryOwner)
    #expect(try await first.requestName(name, .allowReplacement) == .alreadyOwner)
    #expect(try await second.requestName(name, .doNotQueue) == .exists)
    #expect(try await second.requestName(name) == .inQueue)
    #expect(try await second.owner(of: name) == first.uniqueName)
    let owners = Inbox<String?>()
    let subscription = try await first.followOwner(of: name) { owners.put($0) }
    #expect(try await owners.next() == first.uniqueName)
    #expect(try await second.requestName(name, .replaceExisting) == .primaryOwner)
    #expect(try await owners.next() == second.uniqueName)
    await second.close()
    #expect(try await owners.next() == first.uniqueName)
    #expect(try await first.releaseName(name) == .released)
    #expect(try await owners.next() == nil)
    #expect(try await first.releaseName(name) == .nonExistent)
    for wrong in ["noDots", first.uniqueName] {
      let error = await failure { try await first.requestName(wrong) }
      #expect(error?.kind == .invalidArgument)
    }
    withExtendedLifetime(subscription) {}
  }

  @Test("A peer that vanishes is noticed, by its unique name and as a stream")
  func vanishing() async throws {
    let bus = try await PrivateBus()
    let (peer, watcher) = (try await bus.connect(), try await bus.connect())
    let stream = try await watcher.owners(of: peer.uniqueName)
    var owners: [String?] = []
    for try await owner in stream {
      owners.append(owner)
      if owner == nil { break }
      await peer.close()
    }
    #expect(owners == [peer.uniqueName, nil])
  }

  @Test("Without suspending: everything on the queue, in order")
  func completions() async throws {
    let bus = try await PrivateBus()
    let connection = try await bus.connect()
    let events = Inbox<String>()
    @Sendable func note(_ event: String) {
      dispatchPrecondition(condition: .onQueue(connection.queue))
      events.put(event)
    }
    @Sendable func note(_ event: String, _ result: Result<Void, DBusError>) {
      if case .failure(let error) = result { note("\(event): \(error.name)") } else { note(event) }
    }
    let name = connection.uniqueName
    let export = connection.export([DBusInterface("a.b")], at: "/a") { note("exported", $0) }
    let again = connection.export([DBusInterface("a.b")], at: "/a") { note("exported again", $0) }
    #expect(try await events.next() == "exported")
    #expect(try await events.next() == "exported again: \(DBusErrorName.objectPathInUse)")
    let signals = connection.subscribe(
      to: MatchRule(interface: "a.b"), handler: { note($0.member ?? "") },
      completion: { note("subscribed", $0) })
    #expect(try await events.next() == "subscribed")
    let wrong = connection.subscribe(
      to: MatchRule(interface: "a"), handler: { _ in }, completion: { note("wrong", $0) })
    #expect(try await events.next() == "wrong: \(DBusErrorName.invalidArguments)")
    let owner = connection.followOwner(
      of: name, handler: { note($0 ?? "nobody") }, completion: { note("followed", $0) })
    #expect(try await events.next(2) == [name, "followed"])
    let unnamed = connection.followOwner(of: "x", handler: { _ in }, completion: { note("unnamed", $0) })
    #expect(try await events.next() == "unnamed: \(DBusErrorName.invalidArguments)")
    // The export that failed has no power over the one that did not.
    again.remove()
    try export.emit(DBusSignal("S"), of: "a.b")
    connection.send(try signal(1, member: "T")) { note("sent", $0) }
    #expect(try await events.next(3).sorted() == ["S", "T", "sent"])
    await connection.close()
    connection.send(try signal(2)) { note("sent", $0) }
    #expect(try await events.next() == "sent: \(DBusErrorName.disconnected)")
    withExtendedLifetime((signals, wrong, owner, unnamed, export)) {}
  }
}
