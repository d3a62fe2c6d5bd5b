import BluehaulTool
import Synchronization

/// Keeps what is written.
final class MemorySink: OutputSink {
  private let written = Mutex("")

  var text: String { written.withLock { $0 } }
  var lines: [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }
  var isClosed: Bool { false }
  var failure: Int32? { nil }

  func write(_ text: String) { written.withLock { $0 += text } }
}
