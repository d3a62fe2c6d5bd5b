public import Foundation

/// How a receiver works.
public struct ReceiveOptions: Hashable, Sendable {
  /// The name that is advertised.
  public var name: String
  /// Buffer, segments and durability.
  public var session: ReceiverConfiguration
  /// Whether an L2CAP channel is offered beside GATT.
  public var offersChannel = true
  /// End after the session in which the last object of a sender was verified, over as many links as that takes.
  public var once = false
  /// How long the adapter may take to be ready.
  public var radioLimit: Duration = .seconds(10)
  /// The shortest time between two progress events.
  public var progressInterval: Duration = .milliseconds(100)

  /// Events that may wait for a listener that is slow. While more do, no sender is served: none of them is dropped, and each session adds some.
  public var unheardLimit = 16384

  /// Makes the defaults; the device identifier derives from the name. Throws where SHA-256 cannot be computed.
  public init(name: String) throws(TransferError) {
    self.name = name
    let digest = try SHA256Hasher.digest(of: Data(name.utf8))
    session = ReceiverConfiguration(device: Array(digest.bytes.prefix(16)))
  }
}

/// What a receiver tells while it runs.
public enum ReceiveEvent: Hashable, Sendable {
  /// The device advertises under this name and can be sent to; the PSM where a channel is offered.
  case ready(name: String, psm: UInt16?)
  /// Something has happened on the carrier of a peer.
  case session(ReceiverSession.Event, peer: UUID, carrier: CarrierKind)
  /// The adapter is not usable at the moment; the receiver goes on when it is back.
  case interrupted(String)
}
