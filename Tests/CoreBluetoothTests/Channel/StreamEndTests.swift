import Dispatch
import Foundation
import Radio
import Testing

@_spi(Streams) @testable import CoreBluetooth

/// How streams end: by the far end, with the link, by the program.
@Suite(.timeLimit(.minutes(30))) struct StreamEndTests {
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
      // Reading at the end is no error; writing there is one, which must have a reason.
      let refused = stream is OutputStream ? CBError.Code.peripheralDisconnected : nil
      #expect((stream.streamError as? CBError)?.code == (error == nil ? refused : .connectionTimeout))
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

  @Test(arguments: [nil, RadioError(.supervisionTimeout)])
  func endsBeforeItIsOpened(error: RadioError?) async throws {
    let rig = ChannelRig()
    let thread = await RunLoopThread.start()
    rig.far.feed(Data([1, 2]))
    rig.far.end(error)
    #expect(try rig.input.streamStatus == .notOpen)
    try rig.open(in: thread.runLoop)
    await thread.drain()
    let word = error == nil ? "end" : "error"
    #expect(rig.recorder.lines.all.filter { $0.hasPrefix("in") } == ["in open", "in bytes"])
    #expect(rig.recorder.lines.all.filter { $0.hasPrefix("out") } == ["out open", "out \(word)"])
    #expect(try rig.input.readBytes(2) == [1, 2])
    await thread.drain()
    #expect(rig.recorder.lines.all.last == "in \(word)")
    await thread.stop()
  }

  @Test func keepsItsErrorWhenItIsClosed() throws {
    let rig = ChannelRig()
    let (input, output) = (try rig.input, try rig.output)
    input.open()
    output.open()
    rig.far.feed(Data([1]))
    rig.far.end(RadioError(.supervisionTimeout))
    // There are bytes left: for this stream, nothing has failed yet.
    #expect(input.streamError == nil)
    input.close()
    output.close()
    #expect(input.streamError == nil)
    #expect((output.streamError as? CBError)?.code == .connectionTimeout)
  }

  @Test("one direction goes on when the other is closed", arguments: [true, false])
  func closesOneDirection(closesInput: Bool) async throws {
    let rig = ChannelRig()
    let thread = await RunLoopThread.start()
    try rig.open(in: thread.runLoop)
    await thread.drain()
    _ = rig.recorder.lines.take()
    let (input, output) = (try rig.input, try rig.output)
    if closesInput { input.close() } else { output.close() }
    rig.far.feed(Data([1, 2]))
    #expect(output.writeBytes([3]) == (closesInput ? 1 : -1))
    await thread.drain()
    #expect(rig.recorder.lines.take() == [closesInput ? "out space" : "in bytes"])
    #expect(input.readBytes(5) == (closesInput ? nil : [1, 2]))
    #expect(rig.far.closes == 0)
    rig.far.end(nil)
    await thread.drain()
    #expect(rig.recorder.lines.all == [closesInput ? "out end" : "in end"])
    await thread.stop()
  }

  @Test func letsGoOfWhatItsHandlerHolds() async throws {
    let released = Lines()
    let queue = DispatchQueue(label: "events")
    do {
      let rig = ChannelRig { released.append("channel") }
      rig.channel.setEventQueue(queue) { [channel = rig.channel] stream, event in
        #expect(stream === channel.inputStream || stream === channel.outputStream)
        if event == .openCompleted { stream.close() }
      }
      try rig.input.open()
      try rig.output.open()
      queue.sync {}
      #expect(rig.far.closes == 1)
    }
    queue.sync {}
    #expect(released.all == ["channel"])
  }

  @Test("nothing is told after closing, not even what had happened before", arguments: [true, false])
  func tellsNothingAfterClosing(byQueue: Bool) async throws {
    let rig = ChannelRig()
    let thread = await RunLoopThread.start()
    let told = Lines()
    let handle: @Sendable (Stream, Stream.Event) -> Void = { stream, event in
      told.append("\(stream is InputStream ? "in" : "out") \(StreamRecorder.name(of: event))")
      if event == .openCompleted, stream is InputStream {
        rig.far.feed(Data([1]))
        rig.far.end(nil)
        stream.close()
      }
    }
    rig.recorder.react(handle)
    if byQueue {
      let queue = DispatchQueue(label: "events")
      rig.channel.setEventQueue(queue, handler: handle)
      try rig.input.open()
      queue.sync {}
      queue.sync {}
    } else {
      let input = try rig.input
      input.delegate = rig.recorder
      input.schedule(in: thread.runLoop, forMode: .default)
      input.open()
      await thread.drain()
      input.schedule(in: thread.runLoop, forMode: .default)
      await thread.drain()
    }
    #expect(told.all == ["in open"])
    #expect(rig.clock.counts.activities == 0)
    await thread.stop()
  }
}
