/// Why octets from the peer are not what the protocol allows.
public enum HaulCodingError: Error, Hashable, Sendable {
  /// The octets end before the fields do.
  case truncated
  /// The type octet names no message of this direction.
  case unknownType(UInt8)
  /// A field holds a value outside its range; the text names the field and the value.
  case invalidField(String)
  /// An extension that must be understood is not known.
  case unknownExtension(UInt8)
  /// A message is longer than the protocol allows; the number is its length in octets as far as known.
  case tooLong(Int)
  /// A record of an L2CAP channel has an unknown kind.
  case unknownRecord(UInt8)
}

extension HaulCodingError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .truncated: "the message ends before its fields do"
    case .unknownType(let type): "the message type \(type) is not known"
    case .invalidField(let text): text
    case .unknownExtension(let type): "the extension \(type) is not known"
    case .tooLong(let count): "a message of \(count) octets is too long"
    case .unknownRecord(let kind): "the record kind \(kind) is not known"
    }
  }
}
