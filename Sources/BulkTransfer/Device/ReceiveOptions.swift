public import Foundation

/// How a receiver works.
public struct ReceiveOptions: Hashable, Sendable {
  /// The name that is advertised, 1 to ``longestName`` bytes in UTF-8.
  public let name: String
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

  /// The longest name that whoever scans is told whole, in bytes of UTF-8.
  ///
  /// Flags and the service leave 8 bytes in the 31 octets of an advertisement, so a longer name stands in the scan response: 31 octets, of which 2
  /// say what follows (Core Vol 3 Part C 11, CSS Part A 1.2).
  public static let longestName = 29

  /// Makes the defaults; the device identifier derives from the name.
  ///
  /// - Throws: `invalidArgument` where the name cannot be advertised whole; where SHA-256 cannot be computed.
  public init(name: String) throws(TransferError) {
    let count = name.utf8.count
    guard (1...Self.longestName).contains(count) else {
      throw TransferError(
        .invalidArgument,
        "a device cannot be called “\(name)”: that is \(count) bytes in UTF-8, and 1 to \(Self.longestName) can be advertised",
        advice: "choose a name of 1 to \(Self.longestName) bytes")
    }
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
