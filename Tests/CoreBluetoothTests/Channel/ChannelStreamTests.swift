import Radio
import Locking
import Synchronization
import Testing

@_spi(Streams) @testable import CoreBluetooth

/// A channel whose far end is the test.
private struct ChannelRig: Sendable {
  let far: FakeChannel
  let clock = FakeClock()
  let recorder = StreamRecorder()
  let channel: CBL2CAPChannel

  init(room: Int = .max, onRelease: @escaping @Sendable () -> Void = {}) {
    let peer = PeerID(UUID())
    far = FakeChannel(psm: 0x25, peer: peer, room: room, onRelease: onRelease)
    channel = CBL2CAPChannel(_cb: far, peer: CBPeer(_cb: peer), clock: clock)
  }

  var input: InputStream { get throws { try #require(channel.inputStream) } }
  var output: OutputStream { get throws { try #require(channel.outputStream) } }

  /// As a program does it: delegate, schedule, open.
  func open(in runLoop: RunLoop) throws {
    for stream in [try input, try output] as [Stream] {
      stream.delegate = recorder
      stream.schedule(in: runLoop, forMode: .default)
      stream.open()
    }
  }
}

/// Bytes that tell where they belong.
private func pattern(_ count: Int) -> Data {
  Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })
}

@Suite(.timeLimit(.minutes(15))) struct ChannelStreamTests {
  @Test func arriveUnopened() async throws {
    let rig = ChannelRig()
    rig.far.feed(Data([1]))
    let (input, output) = (try rig.input, try rig.output)
    #expect(input.streamStatus == .notOpen)
    #expect(output.streamStatus == .notOpen)
    #expect(!input.hasBytesAvailable)
    #expect(!output.hasSpaceAvailable)
    #expect(input.readBytes(1) == nil)
    #expect(output.writeBytes([1]) == -1)
    #expect(rig.channel.psm == 0x25)
    #expect(rig.channel.peer.identifier == rig.far.peer.uuid)
    let thread = await RunLoopThread.start()
    input.delegate = rig.recorder
    input.schedule(in: thread.runLoop, forMode: .default)
    await thread.drain()
    #expect(rig.recorder.lines.all == [])
    input.open()
    await thread.drain()
    #expect(rig.recorder.lines.all == ["in open", "in bytes"])
    #expect(input.readBytes(10) == [1])
    await thread.stop()
  }

  @Test func worksByTheLooseFormsOfPrograms() async throws {
    let rig = ChannelRig()
    let inputStream = rig.channel.inputStream
    let outputStream = rig.channel.outputStream
    inputStream.delegate = rig.recorder
    outputStream.delegate = rig.recorder
    inputStream.open()
    outputStream.open()
    #expect(inputStream.streamStatus == .open)
    #expect(inputStream.streamError == nil)
    rig.channel.outputStream.schedule(in: .main, forMode: .default)
    rig.channel.outputStream?.remove(from: .main, forMode: .default)
    inputStream.schedule(in: .main, forMode: .common)
    inputStream.remove(from: .main, forMode: .common)
    inputStream.close()
    #expect(inputStream.streamStatus == .closed)
    #expect(CBL2CAPChannel().inputStream == nil)
  }

  /// Where events are wanted.
  enum Delivery: CaseIterable, Sendable {
    case runLoop, runLoopFromElsewhere, serialQueue, concurrentQueue, polling
  }

  @Test(arguments: Delivery.allCases, [1, 3, 511, 512, 513, 5000])
  func losesNothingInAnyPortion(delivery: Delivery, portion: Int) async throws {
    let rig = ChannelRig()
    let sent = pattern(6_000)
    let got = PosixMutex(Data())
    let overlaps = Atomic<Int>(0)
    let inside = Atomic<Int>(0)
    let (ended, end) = AsyncStream<Void>.makeStream()
    let feeder = DispatchQueue(label: "feeder")
    feeder.async {
      var rest = sent
      var length = 1
      while !rest.isEmpty {
        rig.far.feed(rest.prefix(length))
        rest = rest.dropFirst(length)
        length = length * 7 % 1021 + 1
      }
      rig.far.end(nil)
    }
    let handle: @Sendable (Stream, Stream.Event) -> Void = { stream, event in
      if inside.add(1, ordering: .acquiringAndReleasing).oldValue != 0 {
        overlaps.add(1, ordering: .relaxed)
      }
      defer { inside.subtract(1, ordering: .acquiringAndReleasing) }
      guard let input = stream as? InputStream else { return }
      if event == .hasBytesAvailable, let bytes = input.readBytes(portion) {
        got.withLock { $0 += bytes }
      }
      if event == .endEncountered || event == .errorOccurred { end.finish() }
    }
    var thread: RunLoopThread?
    switch delivery {
    case .runLoop, .runLoopFromElsewhere:
      let started = await RunLoopThread.start()
      thread = started
      rig.recorder.react(handle)
      if delivery == .runLoop {
        try await started.run { Result { try rig.open(in: .current) } }.get()
      } else {
        try rig.open(in: started.runLoop)
      }
      for await _ in ended {}
    case .serialQueue, .concurrentQueue:
      let queue = DispatchQueue(label: "events", attributes: delivery == .concurrentQueue ? .concurrent : [])
      rig.channel.setEventQueue(queue) { stream, event in if stream is InputStream { handle(stream, event) } }
      try rig.input.open()
      try rig.output.open()
      for await _ in ended {}
    case .polling:
      let input = try rig.input
      input.open()
      while input.streamStatus == .open {
        if input.hasBytesAvailable, let bytes = input.readBytes(portion) { got.withLock { $0 += bytes } }
        await Task.yield()
      }
      #expect(input.readBytes(1) == [])
    }
    #expect(got.withLock { $0 } == sent)
    #expect(try rig.input.streamStatus == .atEnd)
    let overlapCount = overlaps.load(ordering: .relaxed)
    #expect(overlapCount == 0)
    await thread?.stop()
  }

  @Test func tellsOfBytesOnceUntilTheyAreRead() async throws {
    let rig = ChannelRig()
    let thread = await RunLoopThread.start()
    try rig.open(in: thread.runLoop)
    await thread.drain()
    #expect(rig.recorder.lines.take().sorted() == ["in open", "out open", "out space"])
    for _ in 0..<3 { rig.far.feed(Data([1, 2])) }
    await thread.drain()
    #expect(rig.recorder.lines.take() == ["in bytes"])
    // Part of it: there is more to tell of.
    #expect(try rig.input.readBytes(2) == [1, 2])
    await thread.drain()
    #expect(rig.recorder.lines.take() == ["in bytes"])
    #expect(try rig.input.readBytes(100) == [1, 2, 1, 2])
    #expect(try rig.input.readBytes(100) == [])
    #expect(try rig.input.streamStatus == .open)
    await thread.drain()
    #expect(rig.recorder.lines.all == [])
    rig.far.feed(Data([9]))
    await thread.drain()
    #expect(rig.recorder.lines.all == ["in bytes"])
    await thread.stop()
  }

  /// A peer that gives no credits at first, then few, then many.
  @Test(arguments: [false, true], [3, 512, 10_000])
  func waitsForRoom(byQueue: Bool, portion: Int) async throws {
    let rig = ChannelRig(room: 0)
    let bytes = Array(pattern(10_000))
    let next = PosixMutex(0)
    let (finished, finish) = AsyncStream<Void>.makeStream()
    let handle: @Sendable (Stream, Stream.Event) -> Void = { stream, event in
      guard let output = stream as? OutputStream else { return }
      #expect(event != .errorOccurred)
      guard event == .hasSpaceAvailable else { return }
      next.withLock { next in
        let taken = output.writeBytes(Array(bytes[next..<min(next + portion, bytes.count)]))
        #expect(taken >= 0)
        next += max(taken, 0)
        if next == bytes.count { finish.finish() }
      }
    }
    let thread = await RunLoopThread.start()
    rig.recorder.react(handle)
    if byQueue {
      rig.channel.setEventQueue(DispatchQueue(label: "events"), handler: handle)
      try rig.output.open()
    } else {
      try rig.open(in: thread.runLoop)
    }
    await thread.drain()
    #expect(try !rig.output.hasSpaceAvailable)
    #expect(try rig.output.writeBytes([]) == 0)
    for credit in 1...20 {
      rig.far.give(credit * 11)
      let given = (1...credit).reduce(0) { $0 + $1 * 11 }
      while rig.far.sent.count < given { await Task.yield() }
      #expect(try !rig.output.hasSpaceAvailable)
    }
    rig.far.give(65_535)
    for await _ in finished {}
    #expect(rig.far.sent == Data(bytes))
    #expect(try rig.output.hasSpaceAvailable)
    #expect(try rig.output.streamStatus == .open)
    await thread.stop()
  }

  @Test func takesAPrefixOfALargeWrite() throws {
    let rig = ChannelRig(room: 100)
    let output = try rig.output
    output.open()
    let bytes = Array(pattern(1 << 18))
    #expect(output.writeBytes(bytes) == 100)
    #expect(!output.hasSpaceAvailable)
    #expect(output.writeBytes(bytes) == 0)
    rig.far.give(1 << 18)
    let taken = output.writeBytes(bytes)
    #expect(taken > 0 && taken < bytes.count)
    #expect(output.hasSpaceAvailable)
  }

  @Test(arguments: [nil, RadioError(.supervisionTimeout)], [true, false])
  func endsAfterTheLastByte(error: RadioError?, isReadFirst: Bool) async throws {
    let rig = ChannelRig()
    let thread = await RunLoopThread.start()
    try rig.open(in: thread.runLoop)
    rig.far.feed(Data([1, 2, 3]))
    if isReadFirst { await thread.drain() }
    rig.far.end(error)
    await thread.drain()
    let word = error == nil ? "end" : "error"
    let (input, output) = (try rig.input, try rig.output)
    #expect(rig.recorder.lines.all.filter { $0.hasPrefix("in") } == ["in open", "in bytes"])
    #expect(input.streamStatus == .open)
    #expect(input.readBytes(2) == [1, 2])
    #expect(input.readBytes(2) == [3])
    await thread.drain()
    #expect(rig.recorder.lines.all.filter { $0.hasPrefix("in") }.last == "in \(word)")
    #expect(rig.recorder.lines.all.filter { $0 == "out \(word)" }.count == 1)
    #expect(rig.recorder.lines.all.filter { $0 == "in \(word)" }.count == 1)
    #expect(input.readBytes(2) == (error == nil ? [] : nil))
    #expect(output.writeBytes([1]) == -1)
    #expect(!output.hasSpaceAvailable)
    for stream in [input, output] as [Stream] {
      #expect(stream.streamStatus == (error == nil ? .atEnd : .error))
      #expect((stream.streamError as? CBError)?.code == (error == nil ? nil : .connectionTimeout))
    }
    await thread.stop()
  }

  /// The link is lost in the middle of a long write.
  @Test(arguments: [nil, RadioError(.peerTerminated)])
  func endsWhileBlocked(error: RadioError?) async throws {
    let rig = ChannelRig(room: 1000)
    let thread = await RunLoopThread.start()
    rig.recorder.react { stream, event in
      if event == .hasSpaceAvailable { _ = (stream as? OutputStream)?.writeBytes(Array(pattern(600))) }
    }
    try rig.open(in: thread.runLoop)
    await thread.drain()
    #expect(rig.far.sent.count == 1000)
    rig.far.end(error)
    await thread.drain()
    #expect(rig.recorder.lines.all.last { $0.hasPrefix("out") } == (error == nil ? "out end" : "out error"))
    await thread.stop()
  }

  @Test func endsTheChannelWithBothStreams() throws {
    let rig = ChannelRig()
    let (input, output) = (try rig.input, try rig.output)
    input.open()
    input.close()
    input.close()
    #expect(rig.far.closes == 0)
    output.close()
    #expect(rig.far.closes == 1)
    #expect(output.streamStatus == .closed)
    #expect(output.writeBytes([1]) == -1)
    #expect(input.readBytes(1) == nil)
  }

  @Test func endsTheChannelWithItsObject() async throws {
    let released = Lines()
    let recorder = StreamRecorder()
    let thread = await RunLoopThread.start()
    do {
      var rig: ChannelRig? = ChannelRig { released.append("channel") }
      let far = try #require(rig?.far)
      let input = try #require(rig).input
      input.delegate = recorder
      input.schedule(in: thread.runLoop, forMode: .default)
      input.open()
      rig = nil
      await thread.drain()
      #expect(far.closes == 1)
      #expect(recorder.lines.all == ["in open", "in end"])
    }
    #expect(released.all == ["channel"])
    await thread.stop()
  }

  @Test func followsTheSchedule() async throws {
    let rig = ChannelRig()
    let (first, second) = (await RunLoopThread.start(), await RunLoopThread.start())
    let input = try rig.input
    input.delegate = rig.recorder
    input.open()
    rig.far.feed(Data([1]))
    // Not scheduled anywhere: nothing is told, and simulated time does not wait.
    #expect(rig.clock.counts.activities == 0)
    input.schedule(in: first.runLoop, forMode: .default)
    input.schedule(in: first.runLoop, forMode: .default)
    await first.drain()
    #expect(rig.recorder.lines.take() == ["in open", "in bytes"])
    input.remove(from: first.runLoop, forMode: .default)
    #expect(input.readBytes(5) == [1])
    rig.far.feed(Data([2]))
    await first.drain()
    #expect(rig.recorder.lines.all == [])
    input.schedule(in: second.runLoop, forMode: .common)
    await second.drain()
    #expect(rig.recorder.lines.take() == ["in bytes"])
    // A queue takes the place of run loops, and gives it back.
    let queue = DispatchQueue(label: "events")
    let told = Lines()
    rig.channel.setEventQueue(queue) { _, event in told.append(StreamRecorder.name(of: event)) }
    #expect(input.readBytes(5) == [2])
    rig.far.feed(Data([3]))
    queue.sync {}
    #expect(told.all == ["bytes"])
    rig.channel.setEventQueue(nil, handler: nil)
    #expect(input.readBytes(5) == [3])
    rig.far.feed(Data([4]))
    await second.drain()
    #expect(rig.recorder.lines.all == ["in bytes"])
    await first.stop()
    await second.stop()
  }

  /// The loop of a program that has nothing but its streams on it.
  @Test func keepsARunLoopRunning() async throws {
    let rig = ChannelRig()
    let (finished, finish) = AsyncStream<Bool>.makeStream()
    let got = Atomic<Int>(0)
    rig.recorder.react { stream, event in
      if event == .hasBytesAvailable, let bytes = (stream as? InputStream)?.readBytes(100) {
        got.add(bytes.count, ordering: .relaxed)
      }
    }
    Thread.detachNewThread {
      var isKept = (try? rig.open(in: .current)) != nil
      while isKept, got.load(ordering: .relaxed) < 3 {
        isKept = RunLoop.current.run(mode: .default, before: .distantFuture)
      }
      finish.yield(isKept)
      finish.finish()
    }
    for _ in 0..<3 {
      rig.far.feed(Data([1]))
      await Task.yield()
    }
    for await isKept in finished { #expect(isKept) }
    let count = got.load(ordering: .relaxed)
    #expect(count == 3)
  }

  @Test(arguments: [true, false])
  func holdsSimulatedTimeWhileItTells(byQueue: Bool) async throws {
    let rig = ChannelRig()
    let thread = await RunLoopThread.start()
    let queue = DispatchQueue(label: "events")
    let held = Lines()
    let handle: @Sendable (Stream, Stream.Event) -> Void = { [clock = rig.clock] _, _ in
      held.append(clock.counts.activities > 0 ? "held" : "free")
    }
    rig.recorder.react(handle)
    if byQueue {
      queue.suspend()
      rig.channel.setEventQueue(queue, handler: handle)
      try rig.input.open()
      #expect(rig.clock.counts.activities == 1)
      queue.resume()
      queue.sync {}
    } else {
      try rig.open(in: thread.runLoop)
      await thread.drain()
    }
    #expect(held.all.count >= 1)
    #expect(!held.all.contains("free"))
    #expect(rig.clock.counts.activities == 0)
    // What was on its way when the streams were closed is given up.
    if byQueue { queue.suspend() }
    rig.far.feed(Data([1]))
    try rig.input.close()
    try rig.output.close()
    if byQueue { queue.resume() }
    await thread.drain()
    #expect(rig.clock.counts.activities == 0)
    await thread.stop()
  }
}
