internal import Locking
internal import Foundation
internal import Glibc
internal import Radio

/// Writes the packets of virtual links to a btsnoop file, which Wireshark and btmon open.
///
/// The file shows what the central's host exchanges with its controller: the events that a link is there and gone, and L2CAP frames in
/// ACL packets both ways. Methods may be called from any thread. At most 64 KiB wait in memory; they go to the file when full, once
/// a second of recorded time, when a link ends, and at ``flush()``. After the first failure nothing more is written.
public final class BTSnoopWriter: Sendable {
  /// Why a capture could not be written.
  public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file.
    public var path: String
    /// The error number of the system (errno(3)); EEXIST: another kind of file is there; ENXIO: a FIFO that nobody has open for reading;
    /// EAGAIN: its reader has taken nothing for ``BTSnoopWriter/patience``.
    public var errorNumber: Int32

    public var description: String {
      switch errorNumber {
      case EEXIST: "\(path) is there already and is no capture"
      case ENXIO: "cannot write the capture \(path): nobody reads it"
      case EAGAIN: "cannot go on with the capture \(path): whoever reads it takes nothing any more"
      default: "cannot write the capture \(path): \(unsafe String(cString: strerror(errorNumber)))"
      }
    }
  }

  private struct State {
    var descriptor: Int32
    var buffer: [UInt8] = BTSnoopFormat.header
    var lastFlush: Duration = .zero
    var failure: Failure?
    var isClosed = false
  }

  /// The file.
  public let path: String

  /// How long a write waits for whoever reads a FIFO. Links stand still meanwhile.
  public static let patience: Duration = .seconds(1)

  private static let bufferLimit = 65536
  private let state: PosixMutex<State>
  private let onFailure: @Sendable (Failure) -> Void
  /// Microseconds since 1970 of the clock's zero.
  private let epoch: Int64

  /// Creates the file, or empties one that is a capture: any other that has contents is left as it is.
  ///
  /// `epoch` is the time, in seconds since 1970, at the zero of the instants that are recorded; nil: the present. `onFailure` is called
  /// once, with no lock held, if a later write fails.
  public init(
    path: String, epoch: Double? = nil, onFailure: @escaping @Sendable (Failure) -> Void = { _ in }
  ) throws(Failure) {
    let descriptor = try Self.open(path)
    self.path = path
    self.onFailure = onFailure
    self.epoch = Int64((epoch ?? Date().timeIntervalSince1970) * 1_000_000)
    state = PosixMutex(State(descriptor: descriptor))
    let failure = state.withLock { state in
      self.write(&state)
      return state.failure
    }
    if let failure { throw failure }
  }

  deinit { close() }

  private static func open(_ path: String) throws(Failure) -> Int32 {
    var status = stat()
    if unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 {
      guard isCapture(path) else { throw Failure(path: path, errorNumber: EEXIST) }
    }
    // Neither opening nor writing waits without end for whoever is to read a FIFO or a device.
    let descriptor = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw Failure(path: path, errorNumber: errno) }
    return descriptor
  }

  private static func isCapture(_ path: String) -> Bool {
    let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { _ = Glibc.close(descriptor) }
    var magic = [UInt8](repeating: 0, count: 8)
    return unsafe read(descriptor, &magic, magic.count) == magic.count
      && BTSnoopFormat.header.starts(with: magic)
  }

  /// What went wrong so far.
  public var failure: Failure? { state.withLock { $0.failure } }

  /// Writes what waits in memory.
  public func flush() { update { self.write(&$0) } }

  /// Writes what waits and closes the file; idempotent.
  public func close() {
    update { state in
      guard !state.isClosed else { return }
      self.write(&state)
      state.isClosed = true
      if Glibc.close(state.descriptor) != 0 { self.fail(errno, &state) }
    }
  }

  // MARK: Recording

  /// A link was made; `peerAddress` is the peripheral's, six octets, least significant first.
  func linkMade(handle: UInt16, peerAddress: [UInt8], parameters: LinkParameters, at instant: Duration) {
    let event = HCIPacket.connectionComplete(
      handle: handle, isCentral: true, peerAddress: peerAddress, parameters: parameters)
    update { self.append(event, isFromController: true, isEvent: true, at: instant, &$0) }
  }

  /// A link has ended.
  func linkEnded(handle: UInt16, _ end: LinkEnd, at instant: Duration) {
    let event = HCIPacket.disconnectionComplete(handle: handle, reason: HCIPacket.reason(end))
    update { state in
      self.append(event, isFromController: true, isEvent: true, at: instant, &state)
      self.write(&state)
    }
  }

  /// A whole L2CAP frame, basic header included, that `side` has sent.
  func frame(_ frame: [UInt8], handle: UInt16, from side: LinkSide, at instant: Duration) {
    let isFromController = side == .peripheral
    let packets = HCIPacket.acl(handle: handle, isFromController: isFromController, frame: frame)
    update { state in
      for packet in packets {
        self.append(packet, isFromController: isFromController, isEvent: false, at: instant, &state)
      }
    }
  }

  private func append(
    _ packet: [UInt8], isFromController: Bool, isEvent: Bool, at instant: Duration, _ state: inout State
  ) {
    guard state.failure == nil, !state.isClosed else { return }
    BTSnoopFormat.append(
      packet, isFromController: isFromController, isCommandOrEvent: isEvent,
      microseconds: epoch &+ instant.inNanoseconds / 1000, to: &state.buffer)
    guard state.buffer.count >= Self.bufferLimit || instant - state.lastFlush >= .seconds(1) else { return }
    state.lastFlush = instant
    write(&state)
  }

  // MARK: Writing

  /// Changes the state and tells a failure that this brought about, outside the lock.
  private func update(_ body: (inout State) -> Void) {
    let newFailure = state.withLock { state -> Failure? in
      let hadFailed = state.failure != nil
      body(&state)
      return hadFailed ? nil : state.failure
    }
    if let newFailure { onFailure(newFailure) }
  }

  private func write(_ state: inout State) {
    defer { state.buffer.removeAll(keepingCapacity: true) }
    guard state.failure == nil, !state.isClosed else { return }
    var offset = 0
    while offset < state.buffer.count {
      let count = unsafe state.buffer.withUnsafeBytes { bytes in
        unsafe Glibc.write(
          state.descriptor, bytes.baseAddress.map { unsafe $0 + offset }, bytes.count - offset)
      }
      if count > 0 {
        offset += count
      } else if count == 0 || errno != EINTR {
        let number = count == 0 ? ENOSPC : errno
        guard number == EAGAIN, Self.isWritable(state.descriptor) else { return fail(number, &state) }
      }
    }
  }

  /// Whether there is room, at once or within ``patience``.
  private static func isWritable(_ descriptor: Int32) -> Bool {
    var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return unsafe poll(&polled, 1, Int32(patience / .milliseconds(1))) != 0
  }

  private func fail(_ number: Int32, _ state: inout State) {
    if state.failure == nil { state.failure = Failure(path: path, errorNumber: number) }
  }
}
