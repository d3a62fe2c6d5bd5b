import CoreBluetooth
import Foundation
import Locking
import Synchronization
import Radio

/// Writes down the events of a channel's streams, and does with them what a test wants.
final class StreamRecorder: NSObject, StreamDelegate, @unchecked Sendable {
  let lines = Lines()
  private let reaction = PosixMutex(Reaction())

  /// Holds a closure: one that is a generic value itself is wrapped anew each time that it is read in place.
  private struct Reaction: Sendable {
    var run: (@Sendable (Stream, Stream.Event) -> Void)?
  }

  func react(_ reaction: (@Sendable (Stream, Stream.Event) -> Void)?) {
    self.reaction.withLock { $0.run = reaction }
  }

  func stream(_ stream: Stream, handle event: Stream.Event) {
    lines.append((stream is InputStream ? "in " : "out ") + Self.name(of: event))
    reaction.withLock { $0.run }?(stream, event)
  }

  static func name(of event: Stream.Event) -> String {
    switch event {
    case .openCompleted: "open"
    case .hasBytesAvailable: "bytes"
    case .hasSpaceAvailable: "space"
    case .endEncountered: "end"
    case .errorOccurred: "error"
    default: "\(event.rawValue)"
    }
  }
}

extension InputStream {
  /// Reads up to `count` bytes.
  func readBytes(_ count: Int) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: count)
    let got = unsafe read(&buffer, maxLength: count)
    return got < 0 ? nil : Array(buffer.prefix(got))
  }
}

extension OutputStream {
  /// Writes bytes and returns how many were taken.
  func writeBytes(_ bytes: [UInt8]) -> Int { unsafe write(bytes, maxLength: bytes.count) }
}

/// A thread that runs its run loop until it is stopped.
final class RunLoopThread: Sendable {
  /// Sendable: only `perform` and timers are used from other threads.
  private struct Loop: @unchecked Sendable { let runLoop: RunLoop }

  /// Handed over under a lock, which the thread sanitizer sees, other than the resumption of a task.
  private let loop = PosixMutex<Loop?>(nil)
  private let isStopped = Atomic<Bool>(false)

  static func start() async -> RunLoopThread {
    let thread = RunLoopThread()
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        let here = Loop(runLoop: .current)
        thread.loop.withLock { $0 = here }
        // Keeps the loop from ending before a stream is scheduled.
        let keeper = Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in }
        RunLoop.current.add(keeper, forMode: .default)
        continuation.resume()
        while !thread.isStopped.load(ordering: .acquiring) {
          _ = RunLoop.current.run(mode: .default, before: .distantFuture)
        }
      }
    }
    return thread
  }

  /// The thread's run loop, from the start to the end of the thread.
  var runLoop: RunLoop { loop.withLock { $0 }?.runLoop ?? .main }

  /// Runs `body` on the thread and waits for it.
  func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
      let timer = Timer(fire: Date(), interval: 0, repeats: false) { _ in
        continuation.resume(returning: body())
      }
      runLoop.add(timer, forMode: .default)
    }
  }

  func stop() async {
    await run {
      self.isStopped.store(true, ordering: .releasing)
      CFRunLoopStop(CFRunLoopGetCurrent())
    }
  }

  /// Returns after events that were on their way have been told.
  func drain() async {
    for _ in 0..<4 { await run {} }
  }
}
