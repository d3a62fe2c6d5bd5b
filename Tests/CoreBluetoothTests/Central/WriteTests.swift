import CoreBluetooth
import Radio
import Locking
import Synchronization
import TestSupport
import Testing
import VirtualRadio

@Suite(.timeLimit(.minutes(30))) struct WriteTests {
  @Test func limitsFollowTheLink() async throws {
    let rig = try await CentralRig()
    let (peripheral, _) = try await rig.explored()
    for (mtu, limit) in [(23, 20), (185, 182), (247, 244), (515, 512), (517, 512)] {
      rig.central.setMTU(mtu)
      #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == limit)
      #expect(peripheral.maximumWriteValueLength(for: .withResponse) == 512)
    }
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    #expect(peripheral.maximumWriteValueLength(for: .withoutResponse) == 20)
    #expect(peripheral.maximumWriteValueLength(for: .withResponse) == 512)
  }

  @Test func takesWhatFitsAndSaysWhatDoesNot() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    for count in [0, 182, 183] {
      peripheral.writeValue(Data(count: count), for: objects.data, type: .withoutResponse)
    }
    for count in [512, 513] {
      peripheral.writeValue(Data(count: count), for: objects.data, type: .withResponse)
    }
    let commands = rig.central.takeCommands()
    #expect(commands.prefix(2) == [.write(Data(), 7), .write(Data(count: 182), 7)])
    try #require(commands.count == 3)
    guard case .request(.write(7, Data(count: 512)), let id) = commands[2] else {
      Issue.record("the long write is missing")
      return
    }
    await rig.drain()
    // The write that was too long waits for its turn.
    #expect(rig.recorder.lines.all == [])
    await rig.post(.completed(id, rig.peer, .success(.done)))
    #expect(rig.recorder.lines.all == ["wrote 2A39", "wrote 2A39 att error 13"])
    #expect(rig.log.all.filter { $0.contains("at most 182 octets") && $0.contains("not 183") }.count == 1)
    #expect(peripheral.state == .connected)
    #expect(objects.data.value == nil)
  }

  @Test func aLinkWhoseEndWasNotToldYetIsNoMistakeOfTheProgram() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    rig.central.setMTU(nil)
    peripheral.writeValue(Data([1]), for: objects.data, type: .withoutResponse)
    #expect(rig.central.commands == [] && rig.log.all == [])
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    peripheral.writeValue(Data([1]), for: objects.data, type: .withoutResponse)
    #expect(rig.log.all.filter { $0.contains("only while it is connected") }.count == 1)
  }

  @Test func aFailureWithNothingBeforeItIsToldLater() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    rig.recorder.react { [data = objects.data] line in
      // Inside a callback: the next one must wait until this one has returned.
      if line.hasPrefix("wrote"), rig.recorder.lines.all.count < 3 {
        peripheral.writeValue(Data(count: 600), for: data, type: .withResponse)
      }
    }
    peripheral.writeValue(Data(count: 600), for: objects.data, type: .withResponse)
    await rig.drain()
    #expect(rig.recorder.lines.all == Array(repeating: "wrote 2A39 att error 13", count: 3))
    #expect(rig.recorder.watch.isClean)
  }

  @Test func needsTheProperty() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    peripheral.writeValue(Data([1]), for: objects.plain, type: .withoutResponse)
    peripheral.setNotifyValue(true, for: objects.plain)
    let local = CBMutableCharacteristic(
      type: CBUUID(string: "2A19"), properties: .write, value: nil, permissions: .writeable)
    peripheral.writeValue(Data([1]), for: local, type: .withResponse)
    await rig.drain()
    #expect(rig.central.commands == [])
    #expect(rig.recorder.lines.all == ["notifying false att error 6"])
    #expect(rig.log.all.count == 2)
  }

  @Test func prefersNotificationsToIndications() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    rig.central.setScript(FakeDatabase.script(rig.peer))
    peripheral.setNotifyValue(true, for: objects.notifying)
    peripheral.setNotifyValue(true, for: objects.indicating)
    peripheral.setNotifyValue(false, for: objects.indicating)
    await rig.drain()
    let modes = rig.central.commands.compactMap { command -> NotifyMode? in
      if case .request(.setNotify(_, let mode), _) = command { mode } else { nil }
    }
    #expect(modes == [.notify, .indicate, .none])
    #expect(objects.notifying.isNotifying)
    #expect(!objects.indicating.isNotifying)
    await rig.post(.disconnected(rig.peer, nil, at: .zero))
    #expect(!objects.notifying.isNotifying)
  }

  @Test(arguments: QueueKind.allCases)
  func tellsEachNotificationWithItsValue(kind: QueueKind) async throws {
    let rig = try await CentralRig(kind)
    let (peripheral, objects) = try await rig.explored()
    peripheral.readValue(for: objects.notifying)
    let read = try #require(rig.takeRequests().first)
    for i in 0..<200 as Range<UInt8> {
      rig.central.post(.notified(rig.peer, 3, Data([i])))
      if i == 99 { rig.central.post(.completed(read, rig.peer, .failure(.att(.readNotPermitted)))) }
    }
    rig.central.post(.notified(rig.peer, 99, Data([1])))
    await rig.drain()
    var expected = (0..<200).map { "value \($0)" }
    expected.insert("value 99 att error 2", at: 100)
    #expect(rig.recorder.lines.all == expected)
    #expect(rig.recorder.watch.isClean)
  }

  // MARK: Room for writes without response

  @Test func readinessIsTheRadios() async throws {
    let rig = try await CentralRig()
    let (peripheral, objects) = try await rig.explored()
    #expect(peripheral.canSendWriteWithoutResponse)
    rig.central.setRoom(2)
    for i in 0..<5 as Range<UInt8> {
      peripheral.writeValue(Data([i]), for: objects.data, type: .withoutResponse)
    }
    #expect(!peripheral.canSendWriteWithoutResponse)
    #expect(rig.central.takeCommands() == [.write(Data([0]), 7), .write(Data([1]), 7)])
    // The loss is told once for each time that room ran out.
    #expect(rig.log.all.filter { $0.contains("no room") }.count == 1)
    rig.central.setRoom(1)
    await rig.post(.readyToWrite(rig.peer))
    #expect(rig.recorder.lines.all == ["ready"])
    #expect(peripheral.canSendWriteWithoutResponse)
    for i in 0..<2 as Range<UInt8> {
      peripheral.writeValue(Data([i]), for: objects.data, type: .withoutResponse)
    }
    #expect(rig.log.all.filter { $0.contains("no room") }.count == 2)
    #expect(peripheral.state == .connected)
  }

  /// When the radio says that it is ready.
  enum Signal: CaseIterable, Sendable {
    /// While a write is still running, mostly the one that fills the queue.
    case insideTheWrite
    /// On another thread, mostly as soon as the queue is full.
    case onAnotherThread
    /// As on another thread, but twice.
    case twice
    /// Also while there is room.
    case spuriously
  }

  /// What a random radio does: how much room it makes, and when it says so.
  private struct Moments: Sendable {
    struct Refill: Sendable {
      /// Writes that it makes room for.
      let room: Int
      /// How long the other thread dawdles before there is room, before it says so, and before it says so again, in turns of a loop.
      let turns: [Int]
    }

    private var random: SeededGenerator
    /// Room that there is or that was promised.
    private var left: Int
    /// How many writes before the queue is full the next refill begins.
    private var lead = 0

    init(seed: UInt64, room: Int) {
      random = SeededGenerator(seed: seed)
      left = room
    }

    /// A write was taken; returns the refill that begins with it, and whether the radio says that it is ready without a reason.
    mutating func wrote() -> (refill: Refill?, isSpurious: Bool) {
      left -= 1
      let isSpurious = Int.random(in: 0..<3, using: &random) == 0
      guard left <= lead else { return (nil, isSpurious) }
      let refill = Refill(
        room: .random(in: 1...16, using: &random),
        turns: (0..<3).map { _ in Bool.random(using: &random) ? 0 : .random(in: 0...2000, using: &random) })
      left += refill.room
      lead = Bool.random(using: &random) ? 0 : .random(in: 0...3, using: &random)
      return (refill, isSpurious)
    }
  }

  private static func dawdle(_ turns: Int) {
    let counter = Atomic<Int>(0)
    for _ in 0..<turns { counter.add(1, ordering: .relaxed) }
  }

  /// A program that writes while it can and goes on in the callback never waits for ever, and sends nothing twice.
  @Test(arguments: QueueKind.allCases, Signal.allCases)
  func neverStalls(kind: QueueKind, signal: Signal) async throws {
    let rig = try await CentralRig(kind)
    let (peripheral, objects) = try await rig.explored()
    let total = Sweep.count(20_000)
    let seed = UInt64.random(in: .min ... .max)
    let room = 7
    let radio = DispatchQueue(label: "radio")
    rig.central.setRoom(room)
    let moments = PosixMutex(Moments(seed: seed, room: room))
    rig.central.setScript { central, command in
      guard case .write = command else { return }
      let (refill, isSpurious) = moments.withLock { $0.wrote() }
      if signal == .spuriously, isSpurious { central.post(.readyToWrite(rig.peer)) }
      guard let refill else { return }
      switch signal {
      case .insideTheWrite, .spuriously:
        central.addRoom(refill.room)
        central.post(.readyToWrite(rig.peer))
      case .onAnotherThread, .twice:
        radio.async {
          Self.dawdle(refill.turns[0])
          central.addRoom(refill.room)
          Self.dawdle(refill.turns[1])
          central.post(.readyToWrite(rig.peer))
          guard signal == .twice else { return }
          Self.dawdle(refill.turns[2])
          central.post(.readyToWrite(rig.peer))
        }
      }
    }
    let next = PosixMutex(0)
    let (finished, finish) = AsyncStream<Void>.makeStream()
    let pump: @Sendable () -> Void = { [data = objects.data] in
      next.withLock { next in
        while next < total, peripheral.canSendWriteWithoutResponse {
          peripheral.writeValue(
            Data((0..<4).map { UInt8(truncatingIfNeeded: next >> ($0 * 8)) }), for: data,
            type: .withoutResponse)
          next += 1
        }
        if next == total { finish.finish() }
      }
    }
    rig.recorder.react { line in if line == "ready" { pump() } }
    rig.queue.queue.async(execute: pump)
    // A stall says its seed before the suite's time is over.
    let net = DispatchWorkItem { finish.finish() }
    DispatchQueue.global().asyncAfter(deadline: .now() + 600, execute: net)
    for await _ in finished {}
    net.cancel()
    let count = next.withLock { $0 }
    #expect(count == total, "stalled after \(count) writes, seed \(seed)")
    let numbers = rig.central.commands.compactMap { command -> Int? in
      guard case .write(let value, _) = command else { return nil }
      return value.reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    #expect(numbers.elementsEqual(0..<total), "seed \(seed)")
    #expect(rig.recorder.watch.isClean, "seed \(seed)")
    #expect(!rig.log.all.contains { $0.contains("no room") }, "seed \(seed)")
  }
}
