import Dispatch
import PrivateBus
import Testing

@testable import DBus

@Suite("Calls", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct CallTests {
  /// A peer with methods that answer in different ways, and a caller.
  private final class Pair: Sendable {
    let bus: PrivateBus
    let caller: DBusConnection
    let peer: DBusConnection
    let waiting = Inbox<DBusInvocation>()
    let export: DBusExport

    init(clock: any DBusClock = SystemDBusClock()) async throws {
      bus = try await PrivateBus()
      caller = try await bus.connect(clock: clock)
      peer = try await bus.connect()
      let variant = [DBusArgument("value", .variant)]
      export = try await peer.export(
        [
          DBusInterface(
            "a.b",
            methods: [
              DBusMethod("Echo", in: variant, out: variant) { try? $0.reply($0.message.body) },
              DBusMethod("Wait") { [waiting] in waiting.put($0) },
              DBusMethod("Drop") { _ in },
              DBusMethod("WrongTypes", out: variant) { invocation in
                do throws(DBusError) { try invocation.reply([.byte(1)]) } catch { invocation.fail(error) }
              },
              DBusMethod("Twice") { invocation in
                try? invocation.reply()
                try? invocation.reply()
                invocation.fail(DBusError(name: "a.b.Late", message: ""))
              },
              .asynchronous("Fail") { _ in throw DBusError(name: "a.b.Error", message: "ärger") },
              .asynchronous("FailOtherwise") { _ in throw CancellationError() },
              .asynchronous("Later", out: variant) { _ in [.variant(.string("done"))] },
            ])
        ], at: "/a")
    }

    func call(
      _ member: String, _ body: [DBusValue] = [], timeLimit: Duration? = .seconds(120)
    ) async throws -> DBusMessage {
      try await caller.call(
        .call(destination: peer.uniqueName, path: "/a", interface: "a.b", member: member, body: body),
        timeLimit: timeLimit)
    }
  }

  @Test("Random nested values through the bus and back")
  func echo() async throws {
    let pair = try await Pair()
    for seed in 0..<60 as Range<UInt64> {
      var values = RandomValues(seed: seed)
      let value = values.value(of: values.type(depth: 3), depth: 3)
      let reply = try await pair.call("Echo", [.variant(value)])
      #expect(reply.body == [.variant(value)], "seed \(seed)")
      #expect(reply.sender == pair.peer.uniqueName)
    }
  }

  @Test("Large messages", arguments: [1 << 16, 1 << 20, 24 << 20])
  func large(_ size: Int) async throws {
    let pair = try await Pair()
    var bytes = [UInt8](repeating: 0xA5, count: size)
    for index in stride(from: 0, to: size, by: 4093) {
      bytes[index] = UInt8(truncatingIfNeeded: index / 4093)
    }
    #expect(try await pair.call("Echo", [.variant(.bytes(bytes))]).body == [.variant(.bytes(bytes))])
  }

  @Test("1000 calls at once, each with its own answer")
  func parallel() async throws {
    let pair = try await Pair()
    try await withThrowingTaskGroup(of: (UInt32, DBusMessage).self) { group in
      for number in 0..<1000 as Range<UInt32> {
        group.addTask { (number, try await pair.call("Echo", [.variant(.uint32(number))])) }
      }
      for try await (number, reply) in group { #expect(reply.body == [.variant(.uint32(number))]) }
    }
  }

  @Test("Calls of one thread arrive in their order")
  func order() async throws {
    let pair = try await Pair()
    let replies = Inbox<Result<DBusMessage, DBusError>>()
    for number in 0..<200 as Range<UInt32> {
      pair.caller.call(
        try .call(
          destination: pair.peer.uniqueName, path: "/a", interface: "a.b", member: "Echo",
          body: [.variant(.uint32(number))])
      ) { replies.put($0) }
    }
    let numbers = try await replies.next(200).map { try $0.get().body }
    #expect(numbers == (0..<200).map { [.variant(.uint32($0))] })
  }

  @Test(
    "Error replies have their names",
    arguments: [
      ("Fail", "a.b.Error"), ("FailOtherwise", DBusErrorName.failed), ("Drop", DBusErrorName.failed),
      ("WrongTypes", DBusErrorName.invalidArguments), ("Nowhere", DBusErrorName.unknownMethod),
    ])
  func errors(_ member: String, _ name: String) async throws {
    let pair = try await Pair()
    let error = await failure { try await pair.call(member) }
    #expect(error?.kind == .reply && error?.name == name)
    if member == "Fail" { #expect(error?.message == "ärger") }
  }

  @Test("The first answer counts; an answer may come from a task")
  func answers() async throws {
    let pair = try await Pair()
    #expect(try await pair.call("Twice").body == [])
    #expect(try await pair.call("Later").body == [.variant(.string("done"))])
  }

  @Test("Nobody has the name")
  func unknownName() async throws {
    let pair = try await Pair()
    for name in ["org.example.Nobody", ":1.9999"] {
      let error = await failure {
        try await pair.caller.call(.call(destination: name, path: "/a", interface: "a.b", member: "M"))
      }
      #expect(error?.kind == .reply)
      #expect([DBusErrorName.serviceUnknown, DBusErrorName.nameHasNoOwner].contains(error?.name ?? ""))
    }
  }

  @Test("A call ends at its time limit, and its late reply goes nowhere")
  func timeLimit() async throws {
    let clock = ManualClock()
    let pair = try await Pair(clock: clock)
    let call = Task { await failure { try await pair.call("Wait", timeLimit: .seconds(5)) } }
    let longer = Task { await failure { try await pair.call("Wait", timeLimit: .seconds(7)) } }
    let invocations = try await pair.waiting.next(2)
    clock.advance(by: .seconds(5))
    let error = await call.value
    #expect(error?.kind == .timedOut && error?.name == DBusErrorName.noReply)
    for invocation in invocations { try invocation.reply() }
    #expect(await longer.value == nil)
    #expect(try await pair.call("Later").body.count == 1)
  }

  @Test("A cancelled task stops waiting, before and after its call was sent")
  func cancellation() async throws {
    let pair = try await Pair()
    let call = Task { try await pair.call("Wait", timeLimit: nil) }
    let invocation = try await pair.waiting.next()
    call.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
    try invocation.reply()
    let early = Task {
      unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      return try await pair.call("Wait", timeLimit: nil)
    }
    await #expect(throws: CancellationError.self) { try await early.value }
    #expect(try await pair.call("Later").body.count == 1)
  }

  @Test("With a completion: cancelled once, on the queue")
  func completion() async throws {
    let pair = try await Pair()
    let results = Inbox<DBusError.Kind?>()
    let call = pair.caller.call(
      try .call(destination: pair.peer.uniqueName, path: "/a", interface: "a.b", member: "Wait"),
      timeLimit: nil
    ) { [queue = pair.caller.queue] result in
      dispatchPrecondition(condition: .onQueue(queue))
      if case .failure(let error) = result { results.put(error.kind) } else { results.put(nil) }
    }
    let invocation = try await pair.waiting.next()
    call.cancel()
    call.cancel()
    #expect(try await results.next() == .cancelled)
    withExtendedLifetime(invocation) {}
  }

  @Test("A call that wants no reply is done and gets none")
  func noReply() async throws {
    let pair = try await Pair()
    try await pair.caller.send(
      .call(destination: pair.peer.uniqueName, path: "/a", interface: "a.b", member: "Wait"))
    let invocation = try await pair.waiting.next()
    #expect(!invocation.message.expectsReply)
    try invocation.reply()
    try await pair.caller.send(
      .call(destination: pair.peer.uniqueName, path: "/nowhere", interface: "a.b", member: "Wait"))
    #expect(try await pair.call("Later").body.count == 1)
  }

  @Test("The peer goes away while a call waits")
  func peerGone() async throws {
    let pair = try await Pair()
    let call = Task { await failure { try await pair.call("Wait", timeLimit: nil) } }
    let invocation = try await pair.waiting.next()
    await pair.peer.close()
    let error = await call.value
    #expect(error?.kind == .reply && error?.name == DBusErrorName.noReply)
    withExtendedLifetime(invocation) {}
  }

  @Test("More unanswered calls than allowed are refused, the rest is served")
  func tooMany() async throws {
    let bus = try await PrivateBus()
    var limits = DBusLimits()
    limits.unansweredCalls = 3
    let peer = try await bus.connect(limits: limits)
    let caller = try await bus.connect()
    let waiting = Inbox<DBusInvocation>()
    let export = try await peer.export(
      [DBusInterface("a.b", methods: [DBusMethod("Wait") { waiting.put($0) }])], at: "/a")
    let results = Inbox<DBusError?>()
    for _ in 0..<4 {
      caller.call(
        try .call(destination: peer.uniqueName, path: "/a", interface: "a.b", member: "Wait"), timeLimit: nil
      ) { result in
        if case .failure(let error) = result { results.put(error) } else { results.put(nil) }
      }
    }
    #expect(try await results.next()?.name == DBusErrorName.limitsExceeded)
    for invocation in try await waiting.next(3) { try invocation.reply() }
    #expect(try await results.next(3) == [nil, nil, nil])
    withExtendedLifetime(export) {}
  }
}
