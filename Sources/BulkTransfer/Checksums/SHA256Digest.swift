public import Foundation

/// A SHA-256 hash (FIPS 180-4): 32 bytes, as a value.
public struct SHA256Digest: Hashable, Sendable, CustomStringConvertible {
  /// Length of a digest in bytes.
  public static let byteCount = 32

  /// The digest as four big-endian words.
  private var w0, w1, w2, w3: UInt64

  /// The digest whose bytes are `bytes`; nil unless there are exactly 32.
  public init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    for byte in bytes {
      words.0 = words.0 << 8 | words.1 >> 56
      words.1 = words.1 << 8 | words.2 >> 56
      words.2 = words.2 << 8 | words.3 >> 56
      words.3 = words.3 << 8 | UInt64(byte)
    }
    (w0, w1, w2, w3) = words
  }

  /// The digest written as 64 hexadecimal digits of either case; nil for anything else.
  public init?(hex: String) {
    guard hex.utf8.count == 2 * Self.byteCount, let bytes = [UInt8](hex: hex) else { return nil }
    self.init(bytes: bytes)
  }

  /// The 32 bytes, first byte first.
  public var bytes: [UInt8] {
    [w0, w1, w2, w3].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) }
    }
  }

  /// The 32 bytes, first byte first.
  public var data: Data { Data(bytes) }

  /// 64 hexadecimal digits in lower case.
  public var hex: String { bytes.hex }

  public var description: String { hex }
}

extension SHA256Digest: Codable {
  /// Reads the 64 hexadecimal digits.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let digest = Self(hex: text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "a SHA-256 is written as 64 hexadecimal digits")
    }
    self = digest
  }

  /// Writes the 64 hexadecimal digits.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(hex)
  }
}

extension Array where Element == UInt8 {
  /// Two hexadecimal digits of either case a byte; nil for an odd count or another character.
  init?(hex: String) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(hex.utf8.count / 2)
    var high: UInt8?
    for character in hex.utf8 {
      guard let digit = hexDigit(character) else { return nil }
      if let first = high {
        bytes.append(first << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
    guard high == nil else { return nil }
    self = bytes
  }
}

extension Sequence where Element == UInt8 {
  /// Two hexadecimal digits in lower case a byte.
  var hex: String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in self {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }
}

/// The value of an ASCII hexadecimal digit of either case.
func hexDigit(_ character: UInt8) -> UInt8? {
  switch character {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
  default: nil
  }
}
