import Foundation
import Locking
import Radio
import Testing

@_spi(Streams) @testable import CoreBluetooth

extension CallsInCallbacksTests {
  @Test(arguments: ["open", "bytes", "space", "end", "error"], [true, false])
  func streamsTakeAllCalls(in event: String, byRunLoop: Bool) async throws {
    let rig = try await CentralRig()
    let peripheral = try await rig.connected()
    let far = FakeChannel(psm: 0x80, peer: rig.peer)
    rig.central.setScript { central, command in
      if case .openChannel(_, let id) = command {
        central.post(.completed(id, rig.peer, .success(.channel(far))))
      }
    }
    peripheral.openL2CAPChannel(0x80)
    await rig.drain()
    rig.central.setScript(Self.answer(rig))
    let channel = try #require(rig.recorder.openChannels.first)
    let thread = await RunLoopThread.start()
    let recorder = StreamRecorder()
    let (hits, hit) = AsyncStream<Void>.makeStream()
    let isFirst = PosixMutex(true)
    recorder.react { [weak channel, weak recorder, manager = rig.manager] _, what in
      guard let channel, let recorder else { return }
      guard StreamRecorder.name(of: what) == event, isFirst.withLock({ $0.exchange(with: false) }) else {
        return
      }
      Self.callEverything(channel, recorder, thread.runLoop)
      manager.cancelPeripheralConnection(peripheral)
      manager.connect(peripheral)
      peripheral.openL2CAPChannel(0x80)
      hit.finish()
    }
    if !byRunLoop {
      channel.setEventQueue(DispatchQueue(label: "streams")) { [weak recorder] stream, event in
        guard let recorder else { return }
        recorder.stream(stream, handle: event)
      }
    }
    for stream in [channel.inputStream, channel.outputStream] as [Stream?] {
      stream?.delegate = recorder
      if byRunLoop { stream?.schedule(in: thread.runLoop, forMode: .default) }
      stream?.open()
    }
    if event == "end" || event == "error" {
      far.end(event == "end" ? nil : RadioError(.supervisionTimeout))
    } else {
      far.feed(Data([1, 2, 3]))
    }
    for await _ in hits {}
    await rig.drain()
    #expect(peripheral.state != .disconnecting)
    await thread.stop()
    rig.central.setScript(nil)
  }

  private static func callEverything(
    _ channel: CBL2CAPChannel, _ recorder: StreamRecorder, _ runLoop: RunLoop
  ) {
    _ = (channel.peer, channel.psm)
    guard let input = channel.inputStream, let output = channel.outputStream else { return }
    for stream in [input, output] as [Stream] {
      _ = (stream.streamStatus, stream.streamError, stream.delegate)
      stream.delegate = nil
      stream.delegate = recorder
      stream.remove(from: runLoop, forMode: .default)
      stream.schedule(in: runLoop, forMode: .default)
      stream.open()
      _ = stream.property(forKey: .dataWrittenToMemoryStreamKey)
      _ = stream.setProperty(nil, forKey: .dataWrittenToMemoryStreamKey)
    }
    _ = (input.hasBytesAvailable, output.hasSpaceAvailable)
    _ = input.readBytes(100)
    _ = output.writeBytes([1, 2, 3])
    output.close()
    input.close()
    _ = input.readBytes(100)
    _ = output.writeBytes([1])
  }
}

extension Bool {
  /// Takes a new value and returns the one before.
  fileprivate mutating func exchange(with new: Bool) -> Bool {
    defer { self = new }
    return self
  }
}
