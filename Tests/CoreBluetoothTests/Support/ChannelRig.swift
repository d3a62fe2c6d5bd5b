import Foundation
import Radio
import Testing

@_spi(Streams) @testable import CoreBluetooth

/// A channel whose far end is the test.
struct ChannelRig: Sendable {
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
func pattern(_ count: Int) -> Data {
  Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })
}
