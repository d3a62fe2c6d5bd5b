import Dispatch
import Foundation
import Locking
import Radio
import Synchronization
import Testing

@_spi(Streams) @testable import CoreBluetooth

/// What a program reads is what has arrived.
@Suite(.timeLimit(.minutes(30))) struct StreamReadingTests {
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

  @Test("SDU borders do not matter", arguments: [1, 10, 999, 1_001])
  func readsAPlainStream(portion: Int) throws {
    let rig = ChannelRig()
    let input = try rig.input
    input.open()
    let sent = pattern(3_000)
    for unit in 0..<3 { rig.far.feed(sent.dropFirst(unit * 1_000).prefix(1_000)) }
    var got: [UInt8] = []
    while input.hasBytesAvailable {
      var lent: UnsafeMutablePointer<UInt8>?
      var count = 0
      let isLent = unsafe input.getBuffer(&lent, length: &count)
      #expect(!isLent)
      #expect(input.readBytes(0) == [])
      got += try #require(input.readBytes(portion))
    }
    #expect(Data(got) == sent)
    #expect(input.readBytes(portion) == [])
    #expect(input.streamStatus == .open)
  }

  @Test func leavesWithTheRadioWhatIsNotRead() async throws {
    let rig = ChannelRig()
    let thread = await RunLoopThread.start()
    try rig.open(in: thread.runLoop)
    for _ in 0..<100 {
      rig.far.feed(pattern(1_000))
      await thread.drain()
    }
    #expect(rig.far.waiting == 100_000)
    #expect(try rig.input.readBytes(10)?.count == 10)
    await thread.drain()
    #expect(rig.far.waiting == 99_990)
    await thread.stop()
  }
}
