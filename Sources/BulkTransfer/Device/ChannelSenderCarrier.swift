internal import CoreBluetooth
internal import Dispatch
internal import Foundation

/// Carries a session by records on an L2CAP channel.
final class ChannelSenderCarrier: SenderCarrier {
  let kind = CarrierKind.l2cap
  /// Octets of data in one record: long enough that its header does not matter, short enough that a control message does not wait for long.
  private static let dataLimit = 8192

  private var port: ChannelPort?
  private var writer = RecordWriter()
  private var decoder = RecordDecoder()
  private var handler: ((SenderCarrierEvent) -> Void)?

  init?(_ channel: CBL2CAPChannel, queue: DispatchQueue, handler: @escaping (SenderCarrierEvent) -> Void) {
    self.handler = handler
    port = nil
    port = ChannelPort(channel, queue: queue) { [weak self] event in self?.handle(event) }
    if port == nil { return nil }
  }

  func send(control message: Data) {
    writer.enqueue(Record(kind: .control, body: message))
    flush()
  }

  func pump(_ next: (Int) -> Record?) -> Bool {
    while flush() {
      guard let packet = next(Self.dataLimit) else { return false }
      writer.enqueue(packet)
    }
    return true
  }

  func close() {
    handler = nil
    port?.close()
    port = nil
  }

  /// Writes what waits; true where all of it went.
  @discardableResult
  private func flush() -> Bool { port.map { writer.flush(to: $0) } ?? false }

  private func handle(_ event: ChannelPort.Event) {
    switch event {
    case .readable: read()
    case .writable: if flush() { handler?(.ready) }
    case .ended(let why): handler?(.lost(why))
    }
  }

  private func read() {
    while let bytes = port?.read(), !bytes.isEmpty {
      do throws(HaulCodingError) {
        for record in try decoder.decode(bytes) where record.kind == .control {
          handler?(.control(record.body))
        }
      } catch {
        handler?(.lost("it broke the protocol: \(error)"))
        return
      }
    }
  }
}
