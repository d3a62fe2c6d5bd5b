import Dispatch
import Foundation
import Locking
import Radio
import Synchronization
import Testing

@_spi(Streams) @testable import CoreBluetooth

/// Where and when a stream tells its events.
@Suite(.timeLimit(.minutes(30))) struct StreamScheduleTests {
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

  /// A handler takes the stream off its run loop while there is more to tell.
  @Test func tellsTheRestWhereItWasMoved() async throws {
    let rig = ChannelRig()
    let (first, second) = (await RunLoopThread.start(), await RunLoopThread.start())
    let input = try rig.input
    rig.far.feed(Data([1]))
    rig.recorder.react { stream, event in
      if event == .openCompleted { stream.remove(from: .current, forMode: .default) }
    }
    input.delegate = rig.recorder
    input.schedule(in: first.runLoop, forMode: .default)
    input.open()
    await first.drain()
    #expect(rig.recorder.lines.take() == ["in open"])
    #expect(rig.clock.counts.activities == 0)
    input.schedule(in: second.runLoop, forMode: .default)
    await second.drain()
    #expect(rig.recorder.lines.take() == ["in bytes"])
    await first.stop()
    await second.stop()
  }

  @Test func tellsOnceOnSeveralRunLoops() async throws {
    let rig = ChannelRig()
    let threads = [await RunLoopThread.start(), await RunLoopThread.start()]
    let input = try rig.input
    input.delegate = rig.recorder
    for thread in threads { input.schedule(in: thread.runLoop, forMode: .default) }
    input.open()
    for round in 0..<20 {
      rig.far.feed(Data([1]))
      for thread in threads { await thread.drain() }
      #expect(rig.recorder.lines.take() == (round == 0 ? ["in open", "in bytes"] : ["in bytes"]))
      #expect(input.readBytes(5) == [1])
    }
    // One of them is enough.
    input.remove(from: threads[0].runLoop, forMode: .default)
    rig.far.feed(Data([1]))
    await threads[1].drain()
    #expect(rig.recorder.lines.all == ["in bytes"])
    for thread in threads { await thread.stop() }
  }

  @Test func tellsInItsModesOnly() async throws {
    let rig = ChannelRig()
    let thread = await RunLoopThread.start()
    let mode = RunLoop.Mode("transfer")
    await thread.run {
      let input = rig.channel.inputStream
      input.delegate = rig.recorder
      input.schedule(in: .current, forMode: mode)
      input.open()
    }
    await thread.drain()
    #expect(rig.recorder.lines.all == [])
    await thread.run { for _ in 0..<4 { _ = RunLoop.current.run(mode: mode, before: Date()) } }
    #expect(rig.recorder.lines.all == ["in open"])
    try rig.input.schedule(in: thread.runLoop, forMode: .default)
    try rig.input.remove(from: thread.runLoop, forMode: mode)
    rig.far.feed(Data([1]))
    await thread.drain()
    #expect(rig.recorder.lines.all == ["in open", "in bytes"])
    await thread.stop()
  }

  @Test("removing a stream takes back what was on its way", arguments: [false, true])
  func canBeRemovedWhileEventsWait(isClosed: Bool) async throws {
    let rig = ChannelRig()
    let thread = await RunLoopThread.start()
    let input = try rig.input
    input.delegate = rig.recorder
    input.schedule(in: thread.runLoop, forMode: .default)
    input.open()
    await thread.drain()
    _ = rig.recorder.lines.take()
    let (isBusy, busy) = AsyncStream<Void>.makeStream()
    let gate = DispatchSemaphore(value: 0)
    async let blocked: Void = thread.run {
      busy.finish()
      gate.wait()
    }
    for await _ in isBusy {}
    rig.far.feed(Data([1]))
    #expect(rig.clock.counts.activities == 1)
    if isClosed { input.close() } else { input.remove(from: thread.runLoop, forMode: .default) }
    #expect(rig.clock.counts.activities == 0)
    gate.signal()
    await blocked
    await thread.drain()
    #expect(rig.recorder.lines.all == [])
    input.schedule(in: thread.runLoop, forMode: .default)
    await thread.drain()
    #expect(rig.recorder.lines.all == (isClosed ? [] : ["in bytes"]))
    #expect(rig.clock.counts.activities == 0)
    await thread.stop()
  }
}
