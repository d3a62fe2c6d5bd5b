internal import Foundation

/// Records on their way into a channel, in order.
///
/// What waits is bounded also where the peer never reads: a newer receipt that answers nothing takes the place of an older one, and beyond
/// the capacity the oldest control message is dropped. Requests are repeated, receipts are superseded.
struct RecordWriter {
  private var current = Data()
  private var waiting: [Record] = []

  /// Adds a record.
  mutating func enqueue(_ record: Record) {
    if record.kind == .control {
      if ControlFragmenter.isUnsolicitedReceipt(record.body) {
        waiting.removeAll { $0.kind == .control && ControlFragmenter.isUnsolicitedReceipt($0.body) }
      }
      if waiting.count >= ControlFragmenter.capacity,
        let oldest = waiting.firstIndex(where: { $0.kind == .control })
      {
        waiting.remove(at: oldest)
      }
    }
    waiting.append(record)
  }

  /// Writes until nothing waits (true) or the port is full.
  mutating func flush(to port: ChannelPort) -> Bool {
    while true {
      while !current.isEmpty {
        let count = port.write(current)
        guard count > 0 else { return false }
        current = current.dropFirst(count)
      }
      guard !waiting.isEmpty else { return true }
      current = RecordEncoder.encode(waiting.removeFirst())
    }
  }
}
