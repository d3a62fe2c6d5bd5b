import Dispatch
import Foundation
import Locking
import Radio
import Testing

@_spi(Streams) @testable import CoreBluetooth

extension AirRig {
  /// A channel between the phone and the device, seen from both.
  func openedChannel() throws -> (near: CBL2CAPChannel, far: CBL2CAPChannel) {
    let peripheral = try connected()
    let published = try #require(
      device.recorder.lines.all.compactMap { $0.hasPrefix("published ") ? UInt16($0.dropFirst(10)) : nil }
        .first)
    peripheral.openL2CAPChannel(published)
    try run { !phone.openChannels.isEmpty && !device.recorder.channels.isEmpty }
    return (try #require(phone.openChannels.first), try #require(device.recorder.channels.first))
  }
}

/// Moves bytes through a channel's streams, on a queue or on a run loop, in portions that `portion` chooses.
final class Pipe: Sendable {
  private struct State: Sendable {
    var outgoing: Data
    var incoming = Data()
    var endings: [String] = []
    var recorder: StreamRecorder?
  }

  private let state: PosixMutex<State>
  private let portion: @Sendable () -> Int
  let channel: CBL2CAPChannel

  init(_ channel: CBL2CAPChannel, sending: Data, portion: @escaping @Sendable () -> Int) {
    self.channel = channel
    self.portion = portion
    state = PosixMutex(State(outgoing: sending))
  }

  var received: Data { state.withLock { $0.incoming } }
  /// What the streams have told at their end.
  var endings: [String] { state.withLock { $0.endings } }
  var unsent: Int { state.withLock { $0.outgoing.count } }

  func open(in runLoop: RunLoop?) {
    if let runLoop {
      let recorder = StreamRecorder()
      recorder.react { [weak self] in self?.handle($0, $1) }
      // Stream delegates are held weakly.
      state.withLock { $0.recorder = recorder }
      channel.inputStream.delegate = recorder
      channel.outputStream.delegate = recorder
      channel.inputStream.schedule(in: runLoop, forMode: .default)
      channel.outputStream.schedule(in: runLoop, forMode: .default)
    } else {
      channel.setEventQueue(DispatchQueue(label: "pipe")) { [weak self] in self?.handle($0, $1) }
    }
    channel.inputStream.open()
    channel.outputStream.open()
  }

  func close() {
    channel.inputStream.close()
    channel.outputStream.close()
  }

  private func handle(_ stream: Stream, _ event: Stream.Event) {
    switch event {
    case .hasBytesAvailable:
      guard let bytes = (stream as? InputStream)?.readBytes(portion()) else { return }
      state.withLock { $0.incoming += bytes }
    case .hasSpaceAvailable:
      state.withLock { state in
        guard let output = stream as? OutputStream, !state.outgoing.isEmpty else { return }
        let taken = output.writeBytes(Array(state.outgoing.prefix(portion())))
        state.outgoing = state.outgoing.dropFirst(max(taken, 0))
      }
    case .endEncountered, .errorOccurred:
      state.withLock {
        $0.endings.append((stream is InputStream ? "in " : "out ") + StreamRecorder.name(of: event))
      }
    default: break
    }
  }
}
