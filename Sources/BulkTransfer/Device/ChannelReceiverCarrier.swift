internal import CoreBluetooth
internal import Dispatch
internal import Foundation

/// The records of one channel, towards one central.
final class ChannelReceiverCarrier {
  /// What the carrier tells.
  enum Event {
    case control(Data)
    /// Records of the data stream that have come together.
    case data([Record])
    case lost
  }

  private var port: ChannelPort?
  private var writer = RecordWriter()
  private var decoder = RecordDecoder()
  private var handler: ((Event) -> Void)?

  init?(_ channel: CBL2CAPChannel, queue: DispatchQueue) {
    port = ChannelPort(channel, queue: queue) { [weak self] event in self?.handle(event) }
    if port == nil { return nil }
  }

  /// Sets who is told, and tells what has come already.
  func start(_ handler: @escaping (Event) -> Void) {
    self.handler = handler
    read()
  }

  func send(_ message: Data) {
    writer.enqueue(Record(kind: .control, body: message))
    flush()
  }

  func close() {
    handler = nil
    port?.close()
    port = nil
  }

  private func flush() { if let port { _ = writer.flush(to: port) } }

  private func handle(_ event: ChannelPort.Event) {
    switch event {
    case .readable: read()
    case .writable: flush()
    case .ended: handler?(.lost)
    }
  }

  private func read() {
    while handler != nil, let bytes = port?.read(), !bytes.isEmpty {
      do throws(HaulCodingError) {
        var data: [Record] = []
        for record in try decoder.decode(bytes) {
          guard record.kind == .control else {
            data.append(record)
            continue
          }
          tell(&data)
          handler?(.control(record.body))
        }
        tell(&data)
      } catch {
        // The protocol was broken: the channel is of no use any more.
        handler?(.lost)
        close()
      }
    }
  }

  private func tell(_ data: inout [Record]) {
    if !data.isEmpty { handler?(.data(data)) }
    data = []
  }
}
