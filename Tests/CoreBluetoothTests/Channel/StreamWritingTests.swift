import Dispatch
import Foundation
import Locking
import Radio
import Testing

@_spi(Streams) @testable import CoreBluetooth

/// A channel takes what it has room for.
@Suite(.timeLimit(.minutes(30))) struct StreamWritingTests {
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

  @Test func takesNothingOfNothing() async throws {
    let rig = ChannelRig(room: 1)
    let thread = await RunLoopThread.start()
    rig.recorder.react { stream, event in
      // A program that has nothing to write now.
      if event == .hasSpaceAvailable { _ = (stream as? OutputStream)?.writeBytes([]) }
    }
    try rig.open(in: thread.runLoop)
    await thread.drain()
    #expect(rig.recorder.lines.take().filter { $0.hasPrefix("out") } == ["out open", "out space"])
    let output = try rig.output
    let byte: [UInt8] = [7]
    for count in [0, -1, .min] { #expect(unsafe output.write(byte, maxLength: count) == 0) }
    #expect(output.hasSpaceAvailable)
    #expect(output.writeBytes([1, 2]) == 1)
    #expect(rig.far.sent == Data([1]))
    rig.far.give(1)
    await thread.drain()
    #expect(rig.recorder.lines.all == ["out space"])
    await thread.stop()
  }
}
