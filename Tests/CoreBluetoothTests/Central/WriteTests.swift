import CoreBluetooth
import Radio
import Locking
import Synchronization
import Testing

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
    /// While the write that fills the queue is still running.
    case insideTheWrite
    /// On another thread, as soon as the queue is full.
    case onAnotherThread
    /// As on another thread, but twice.
    case twice
    /// Also while there is room.
    case spuriously
  }

  /// A program that writes while it can and goes on in the callback never waits for ever, and sends nothing twice.
  @Test(arguments: QueueKind.allCases, Signal.allCases)
  func neverStalls(kind: QueueKind, signal: Signal) async throws {
    let rig = try await CentralRig(kind)
    let (peripheral, objects) = try await rig.explored()
    let total = 5000
    let room = 7
    let radio = DispatchQueue(label: "radio")
    rig.central.setRoom(room)
    let writes = Atomic<Int>(0)
    rig.central.setScript { central, command in
      guard case .write = command else { return }
      let count = writes.add(1, ordering: .sequentiallyConsistent).newValue
      if signal == .spuriously, count % 3 == 0 { central.post(.readyToWrite(rig.peer)) }
      guard count % room == 0 else { return }
      switch signal {
      case .insideTheWrite, .spuriously:
        central.setRoom(room)
        central.post(.readyToWrite(rig.peer))
      case .onAnotherThread, .twice:
        radio.async {
          central.setRoom(room)
          central.post(.readyToWrite(rig.peer))
          if signal == .twice { central.post(.readyToWrite(rig.peer)) }
        }
      }
    }
    let next = PosixMutex(0)
    let (finished, finish) = AsyncStream<Void>.makeStream()
    let pump: @Sendable () -> Void = { [data = objects.data] in
      next.withLock { next in
        while next < total, peripheral.canSendWriteWithoutResponse {
          peripheral.writeValue(
            Data([UInt8(next & 0xFF), UInt8(next >> 8)]), for: data, type: .withoutResponse)
          next += 1
        }
        if next == total { finish.finish() }
      }
    }
    rig.recorder.react { line in if line == "ready" { pump() } }
    rig.queue.queue.async(execute: pump)
    for await _ in finished {}
    let numbers = rig.central.commands.compactMap { command -> Int? in
      if case .write(let value, _) = command { Int(value[0]) | Int(value[1]) << 8 } else { nil }
    }
    #expect(numbers == Array(0..<total))
    #expect(rig.recorder.watch.isClean)
    #expect(!rig.log.all.contains { $0.contains("no room") })
  }
}
