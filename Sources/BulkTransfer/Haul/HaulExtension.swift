/// A field that later versions may add to HELLO, WELCOME and OFFER.
public struct HaulExtension: Hashable, Sendable {
  /// 0x80 and above must be understood, the others may be skipped.
  public var type: UInt8
  /// At most 255 octets.
  public var value: [UInt8]

  public init(type: UInt8, value: [UInt8]) {
    self.type = type
    self.value = value
  }

  /// Whether a peer that does not know the extension has to refuse.
  public var isCritical: Bool { type >= 0x80 }
}

extension Array where Element == HaulExtension {
  /// The first extension that must be understood; this version knows none.
  var firstCritical: HaulExtension? { first(where: \.isCritical) }
}

extension MessageReader {
  mutating func extensions() throws(HaulCodingError) -> [HaulExtension] {
    var found: [HaulExtension] = []
    while remaining > 0 {
      let type = try u8()
      let count = Int(try u8())
      found.append(HaulExtension(type: type, value: try octets(count)))
    }
    return found
  }

  /// Extensions at the end of a message that had none in the beginning: what is no whole extension ends them.
  mutating func extensionsBeforeAnythingElse() -> [HaulExtension] {
    var found: [HaulExtension] = []
    while let type = try? u8(), let count = try? u8(), let value = try? octets(Int(count)) {
      found.append(HaulExtension(type: type, value: value))
    }
    return found
  }
}

extension MessageWriter {
  mutating func extensions(_ extensions: [HaulExtension]) {
    for item in extensions {
      let value = item.value.prefix(255)
      u8(item.type)
      u8(UInt8(value.count))
      octets(Array(value))
    }
  }

  /// Writes sixteen octets, cut or filled with zeros.
  mutating func identifier(_ value: [UInt8]) {
    let cut = Array(value.prefix(HaulRequest.identifierCount))
    octets(cut + [UInt8](repeating: 0, count: HaulRequest.identifierCount - cut.count))
  }
}
