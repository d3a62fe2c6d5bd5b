public import CoreFoundation
public import Foundation
internal import Radio

/// A UUID as Bluetooth uses it: of 16, 32 or 128 bits.
///
/// Two are equal, and hash alike, where their 128-bit expansions over the Bluetooth base UUID are (Core Vol 3 Part B 2.5.1).
// Sendable: nothing of it changes after initialisation.
open class CBUUID: NSObject, NSCopying, @unchecked Sendable {
  private let octets: Data
  let value: BluetoothUUID

  /// Reads 4 or 8 hexadecimal digits, or the long form with hyphens; traps on anything else, since the text is the program's own.
  public init(string theString: String) {
    guard let octets = Self.parse(theString), let value = BluetoothUUID(bigEndian: octets) else {
      preconditionFailure(
        "\"\(theString)\" is not a UUID: give 4 or 8 hexadecimal digits, or 32 as 8-4-4-4-12")
    }
    self.octets = Data(octets)
    self.value = value
  }

  /// Takes 2, 4 or 16 octets, most significant first; traps on any other count.
  public init(data theData: Data) {
    guard let value = BluetoothUUID(bigEndian: theData) else {
      preconditionFailure("A UUID has 2, 4 or 16 octets, not \(theData.count)")
    }
    octets = Data(theData)
    self.value = value
  }

  /// Takes 128 bits.
  public init(nsuuid theUUID: UUID) {
    value = BluetoothUUID(theUUID)
    octets = Data(value.bigEndianBytes)
  }

  /// Takes 128 bits of a Core Foundation object.
  @available(*, deprecated, message: "Use init(nsuuid:) instead")
  public convenience init(cfuuid theUUID: CFUUID) {
    let b = CFUUIDGetUUIDBytes(theUUID)
    self.init(
      data: Data([
        b.byte0, b.byte1, b.byte2, b.byte3, b.byte4, b.byte5, b.byte6, b.byte7,
        b.byte8, b.byte9, b.byte10, b.byte11, b.byte12, b.byte13, b.byte14, b.byte15,
      ]))
  }

  /// Takes a UUID of the radio; in its short form where it has one.
  init(_ uuid: BluetoothUUID) {
    value = uuid
    octets = Data(uuid.short.map { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] } ?? uuid.bigEndianBytes)
  }

  /// The octets as given, most significant first: 2, 4 or 16.
  open var data: Data { octets }

  /// Hexadecimal digits in upper case: short where it was given short, else the long form with hyphens.
  open var uuidString: String {
    let digits = octets.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
    guard digits.count == 16 else { return digits.joined() }
    let groups = [digits[0..<4], digits[4..<6], digits[6..<8], digits[8..<10], digits[10..<16]]
    return groups.map { $0.joined() }.joined(separator: "-")
  }

  open override var description: String { uuidString }

  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CBUUID else { return false }
    return self === other || value == other.value
  }

  open override var hash: Int { value.hashValue }

  /// Returns the object itself: it never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  private static func parse(_ text: String) -> [UInt8]? {
    let characters = Array(text.utf8)
    let digits: [UInt8]
    switch characters.count {
    case 4, 8: digits = characters
    case 36:
      guard [8, 13, 18, 23].allSatisfy({ characters[$0] == UInt8(ascii: "-") }) else { return nil }
      digits = characters.filter { $0 != UInt8(ascii: "-") }
      guard digits.count == 32 else { return nil }
    default: return nil
    }
    var octets: [UInt8] = []
    for pair in stride(from: 0, to: digits.count, by: 2) {
      guard let high = nibble(digits[pair]), let low = nibble(digits[pair + 1]) else { return nil }
      octets.append(high << 4 | low)
    }
    return octets
  }

  private static func nibble(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
