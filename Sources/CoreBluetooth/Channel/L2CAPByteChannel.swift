internal import Dispatch
internal import Locking
public import Foundation
internal import Radio

/// The bytes of an L2CAP channel for tasks: calls that wait, instead of streams that tell.
///
/// It takes over the channel's streams; a program uses either them or this. Both directions have back-pressure: bytes that nobody reads stay with
/// the radio, which lets the peer send no more than it has memory for, and a write waits until the channel has taken all of it.
///
/// Calls of one direction are served in the order in which they were made, and writes are never mixed. The channel ends with ``close()``, or when this
/// object is released.
///
/// Where the radio's time is simulated, it stands still from the moment a call is answered until the call has returned. What the task does afterwards
/// counts if the task runs on an executor whose queue the radio's clock watches, or holds an activity of the clock itself.
@_spi(Streams) public final class L2CAPByteChannel: Sendable {
  /// What is left of a write.
  struct PartialWrite: Sendable {
    var rest: Data
    var isBegun = false
  }

  private let channel: CBL2CAPChannel
  let reads: CallLine<Int, Data?>
  let writes: CallLine<PartialWrite, Void>
  private let directions: [ChannelDirection]

  /// Takes over `channel`; nil where that is an object without streams.
  public init?(_ channel: CBL2CAPChannel) {
    guard let core = channel.core, let input = channel.input?.incoming, let output = channel.output?.outgoing
    else { return nil }
    self.channel = channel
    directions = [input.direction, output.direction]
    reads = CallLine(clock: core.clock) { count in
      guard let bytes = input.take(upTo: count) else { return .failure(Self.reason(input.direction)) }
      if !bytes.isEmpty { return .success(bytes) }
      return input.direction.status == .atEnd ? .success(nil) : nil
    }
    // Set with the lock of `writes` held, and looked at with it.
    let isTorn = PosixMutex(false)
    writes = CallLine(clock: core.clock) { write in
      if isTorn.withLock({ $0 }) { return .failure(Self.tornWrite) }
      while !write.rest.isEmpty {
        guard let count = output.put(write.rest) else { return .failure(Self.reason(output.direction)) }
        guard count > 0 else { return nil }
        write.isBegun = true
        write.rest = write.rest.dropFirst(count)
      }
      return .success(())
    } whenGivenUp: { write in
      if write.isBegun { isTorn.withLock { $0 = true } }
    }
    let queue = DispatchQueue(label: "CoreBluetooth.L2CAPByteChannel")
    channel.setEventQueue(queue) { [weak reads, weak writes] stream, _ in
      if stream is InputStream { reads?.advance() } else { writes?.advance() }
    }
    for direction in directions { direction.open() }
  }

  deinit { close() }

  /// Waits for bytes and takes up to `count` of them; nil: the peer has closed the channel, and everything it had sent was read.
  ///
  /// A cancelled call takes nothing.
  /// - Throws: `CBError`, where the channel has failed and everything that had arrived was read, or where it was closed here; `CancellationError`.
  public func read(upTo count: Int) async throws -> Data? {
    guard count > 0 else { return Data() }
    return try await reads.call(count)
  }

  /// Returns once the channel has taken all of `bytes`; that says nothing of the peer having read them.
  ///
  /// A call that is cancelled before its first byte was taken sends nothing. One that is cancelled later has torn the stream of bytes: all further writes
  /// throw.
  /// - Throws: `CBError`, where the channel has ended, was closed here, or was torn; `CancellationError`.
  public func write(_ bytes: Data) async throws {
    guard !bytes.isEmpty else { return }
    try await writes.call(PartialWrite(rest: bytes))
  }

  /// Ends the channel once what was written has been sent; calls that wait throw. Idempotent.
  public func close() {
    for direction in directions { direction.close() }
    reads.advance()
    writes.advance()
  }

  private static func reason(_ direction: ChannelDirection) -> any Error {
    direction.error ?? CBError(.unknown)
  }

  private static var tornWrite: any Error {
    RadioError(.cancelled, "A cancelled write has sent a part of its bytes; the channel can only be closed.")
      .cbError
  }
}
