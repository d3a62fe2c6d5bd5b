#if canImport(CoreBluetooth) && os(Linux)
  @_spi(Streams) internal import CoreBluetooth
#else
  internal import CoreBluetooth
#endif
internal import Dispatch
internal import Foundation

/// The two streams of an L2CAP channel as one port that lives on a queue.
// Sendable: everything is touched on the queue only.
final class ChannelPort: @unchecked Sendable {
  /// What the port tells.
  enum Event: Sendable {
    /// There are octets to read.
    case readable
    /// There is room to write.
    case writable
    /// The channel is gone, for this reason.
    case ended(String)
  }

  private static let block = 16384

  private let channel: CBL2CAPChannel
  private let input: InputStream
  private let output: OutputStream
  private var handler: ((Event) -> Void)?
  private var buffer = [UInt8](repeating: 0, count: block)

  /// Opens the streams of `channel`; its events come on `queue`. nil where the channel has no streams.
  init?(_ channel: CBL2CAPChannel, queue: DispatchQueue, handler: @escaping (Event) -> Void) {
    guard let input = channel.inputStream, let output = channel.outputStream else { return nil }
    self.channel = channel
    self.input = input
    self.output = output
    self.handler = handler
    listen(on: queue)
    input.open()
    output.open()
  }

  /// Takes what has arrived, up to one block; empty where nothing is there.
  func read() -> Data {
    let count = unsafe buffer.withUnsafeMutableBufferPointer { space in
      unsafe space.baseAddress.map { unsafe input.read($0, maxLength: space.count) } ?? 0
    }
    return count > 0 ? Data(buffer[..<count]) : Data()
  }

  /// Hands over a prefix of `bytes` and returns its length, 0 where there is no room.
  func write(_ bytes: Data) -> Int {
    let count = unsafe bytes.withUnsafeBytes { raw in
      unsafe raw.bindMemory(to: UInt8.self).baseAddress.map { unsafe output.write($0, maxLength: raw.count) }
        ?? 0
    }
    return max(count, 0)
  }

  /// Ends the channel; no event comes any more.
  func close() {
    handler = nil
    silence()
    input.close()
    output.close()
  }

  private func handle(_ stream: Stream, _ event: Stream.Event) {
    switch event {
    case .hasBytesAvailable: handler?(.readable)
    case .hasSpaceAvailable: handler?(.writable)
    case .endEncountered: handler?(.ended("the peer closed the channel"))
    case .errorOccurred:
      handler?(.ended(stream.streamError.map { "\($0.localizedDescription)" } ?? "channel error"))
    default: break
    }
  }

  #if os(Linux)
    private func listen(on queue: DispatchQueue) {
      channel.setEventQueue(queue) { [weak self] stream, event in self?.handle(stream, event) }
    }

    private func silence() { channel.setEventQueue(nil, handler: nil) }
  #else
    /// Forwards delegate calls; Foundation's streams hold their delegate weakly.
    private final class Delegate: NSObject, StreamDelegate {
      weak var port: ChannelPort?
      func stream(_ stream: Stream, handle event: Stream.Event) { port?.handle(stream, event) }
    }

    private let delegate = Delegate()

    private func listen(on queue: DispatchQueue) {
      delegate.port = self
      input.delegate = delegate
      output.delegate = delegate
      CFReadStreamSetDispatchQueue(input, queue)
      CFWriteStreamSetDispatchQueue(output, queue)
    }

    private func silence() {
      input.delegate = nil
      output.delegate = nil
    }
  #endif
}
