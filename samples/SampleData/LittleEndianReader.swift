public import Foundation

/// Reads little-endian numbers from a value that a device has sent.
///
/// A read that would pass the end answers nil and takes nothing, so that a short value is never a trap.
public struct LittleEndianReader: Sendable {
  private var rest: Data

  /// Reads `value` from its first octet on.
  public init(_ value: Data) { rest = value }

  /// How many octets are left.
  public var remaining: Int { rest.count }

  /// Takes a number of the type that is asked for: `let level: UInt8? = reader.read()`.
  public mutating func read<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number? {
    let count = Number.bitWidth / 8
    guard rest.count >= count else { return nil }
    var number: Number = 0
    for octet in rest.prefix(count).reversed() {
      // In steps that a number of one octet can be shifted by as well.
      number = (number << 4) << 4 | Number(truncatingIfNeeded: octet)
    }
    rest = rest.dropFirst(count)
    return number
  }

  /// Takes `count` octets.
  public mutating func read(octets count: Int) -> Data? {
    guard count >= 0, rest.count >= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return Data(rest.prefix(count))
  }
}

extension Data {
  /// Appends a number, least significant octet first.
  public mutating func append<Number: FixedWidthInteger>(littleEndian number: Number) {
    for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
      append(UInt8(truncatingIfNeeded: number >> Number(shift)))
    }
  }
}
