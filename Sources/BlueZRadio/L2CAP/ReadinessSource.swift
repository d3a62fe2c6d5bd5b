internal import DBus
internal import Dispatch

/// A dispatch source for a socket that can be switched on and off. It begins switched off, and keeps the descriptor open until it is cancelled.
struct ReadinessSource {
  private let source: any DispatchSourceProtocol
  private var isEnabled = false
  private var isCancelled = false

  static func reading(
    _ socket: UnixDescriptor, queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
  ) -> Self {
    Self(DispatchSource.makeReadSource(fileDescriptor: socket.raw, queue: queue), socket, handler)
  }

  static func writing(
    _ socket: UnixDescriptor, queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
  ) -> Self {
    Self(DispatchSource.makeWriteSource(fileDescriptor: socket.raw, queue: queue), socket, handler)
  }

  private init(
    _ source: any DispatchSourceProtocol, _ socket: UnixDescriptor, _ handler: @escaping @Sendable () -> Void
  ) {
    self.source = source
    source.setEventHandler(handler: handler)
    source.setCancelHandler { withExtendedLifetime(socket) {} }
  }

  mutating func setEnabled(_ enabled: Bool) {
    guard !isCancelled, enabled != isEnabled else { return }
    isEnabled = enabled
    if enabled { source.resume() } else { source.suspend() }
  }

  mutating func cancel() {
    guard !isCancelled else { return }
    source.cancel()
    // A suspended source would never run its cancel handler, and must not be released.
    setEnabled(true)
    isCancelled = true
  }
}
