import BlockingTests
import Dispatch
import Foundation
import Glibc
import Locking
import Testing

@testable import Readiness

@Suite("Readiness of descriptors", .blocking, .timeLimit(.minutes(30))) struct ReadinessTests {
  /// A connected pair; what is left of it is closed at its end.
  private final class Pair: Sendable {
    let near: Int32
    private let farEnd: PosixMutex<Int32>

    init() throws {
      var ends: [Int32] = [-1, -1]
      let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
      try #require(unsafe socketpair(AF_UNIX, type, 0, &ends) == 0)
      near = ends[0]
      farEnd = PosixMutex(ends[1])
    }

    deinit {
      close(near)
      closeFar()
    }

    func say(_ text: String) {
      let bytes = Array(text.utf8)
      _ = farEnd.withLock { unsafe write($0, bytes, bytes.count) }
    }

    func closeFar() {
      farEnd.withLock { far in
        if far >= 0 { close(far) }
        far = -1
      }
    }

    /// One octet as text; empty: the end; nil: nothing is there.
    func readOne() -> String? {
      var byte: UInt8 = 0
      let count = unsafe read(near, &byte, 1)
      return count < 0 ? nil : count == 0 ? "" : String(UnicodeScalar(byte))
    }
  }

  private func monitor() throws -> ReadinessMonitor {
    try #require(ReadinessMonitor(queue: DispatchQueue(label: "test")))
  }

  @Test(
    "what was said before a hang-up is told of until it was read, and then the end, however little is read at a time"
  )
  func hangUp() throws {
    let monitor = try monitor()
    // Numbers of descriptors come again and again, as in a program whose connections come and go.
    for _ in 0..<200 {
      let pair = try Pair()
      let heard = PosixMutex("")
      let end = DispatchSemaphore(value: 0)
      pair.say("last words")
      pair.closeFar()
      let source = ReadinessSource.reading(pair.near, monitor) {
        guard let octet = pair.readOne() else { return }
        heard.withLock { $0 += octet }
        if octet.isEmpty { end.signal() }
      }
      try #require(source != nil)
      source?.setEnabled(true)
      try #require(end.wait(timeout: .now() + 300) == .success)
      source?.cancel()
      #expect(heard.withLock { $0 } == "last words")
    }
  }

  @Test("one that is switched off, cancelled or let go of is not called; one that is switched on again is")
  func switching() throws {
    let monitor = try monitor()
    let pair = try Pair()
    let calls = PosixMutex(0)
    let called = DispatchSemaphore(value: 0)
    var source = ReadinessSource.reading(pair.near, monitor) {
      calls.withLock { $0 += 1 }
      _ = pair.readOne()
      called.signal()
    }
    pair.say("a")
    monitor.queue.sync {}
    #expect(calls.withLock { $0 } == 0)
    source?.setEnabled(true)
    try #require(called.wait(timeout: .now() + 300) == .success)
    source?.setEnabled(false)
    monitor.queue.sync {}
    pair.say("b")
    // Another one, which is called after the first would have been.
    let marker = try Pair()
    marker.say("m")
    let marked = DispatchSemaphore(value: 0)
    let other = ReadinessSource.reading(marker.near, monitor) {
      _ = marker.readOne()
      marked.signal()
    }
    other?.setEnabled(true)
    try #require(marked.wait(timeout: .now() + 300) == .success)
    #expect(calls.withLock { $0 } == 1)
    source?.setEnabled(true)
    try #require(called.wait(timeout: .now() + 300) == .success)
    source = nil
    pair.say("c")
    marker.say("n")
    try #require(marked.wait(timeout: .now() + 300) == .success)
    #expect(calls.withLock { $0 } == 2)
  }

  @Test("a hang-up alone is waited for without being told of what can be read")
  func hangUpOnly() throws {
    let monitor = try monitor()
    let pair = try Pair()
    let hungUp = DispatchSemaphore(value: 0)
    let source = ReadinessSource.reading(pair.near, monitor) { hungUp.signal() }
    source?.watch(.hangUp)
    pair.say("unread")
    let marker = try Pair()
    marker.say("m")
    let marked = DispatchSemaphore(value: 0)
    let other = ReadinessSource.reading(marker.near, monitor) {
      _ = marker.readOne()
      marked.signal()
    }
    other?.setEnabled(true)
    try #require(marked.wait(timeout: .now() + 300) == .success)
    #expect(hungUp.wait(timeout: .now()) == .timedOut)
    pair.closeFar()
    #expect(hungUp.wait(timeout: .now() + 300) == .success)
    source?.cancel()
  }
}
