import BluehaulTool
import Locking

/// Keeps what is written, and tells who waits for it.
final class MemorySink: OutputSink {
  private struct State {
    var text = ""
    var waiting: [(text: String, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = PosixMutex(State())
  private let onWrite: @Sendable (String) -> Void

  init(onWrite: @escaping @Sendable (String) -> Void = { _ in }) { self.onWrite = onWrite }

  var text: String { state.withLock { $0.text } }
  var lines: [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }
  var isClosed: Bool { false }
  var failure: Int32? { nil }

  func write(_ text: String) {
    let arrived = state.withLock { state in
      state.text += text
      let arrived = state.waiting.filter { state.text.contains($0.text) }
      state.waiting.removeAll { waiting in state.text.contains(waiting.text) }
      return arrived
    }
    for waiting in arrived { waiting.continuation.resume() }
    onWrite(text)
  }

  /// Returns once `text` was written.
  func wait(for text: String) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.text.contains(text) { return true }
        state.waiting.append((text, continuation))
        return false
      }
      if isThere { continuation.resume() }
    }
  }
}
