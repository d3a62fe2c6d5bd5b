internal import Foundation
internal import Radio

/// What the managers of one role save.
protocol SavedContents: Codable, Equatable, Sendable {
  /// The role in the file and in its name.
  static var role: String { get }
  /// The option of a manager that asks for it.
  static var identifierKey: String { get }
  /// Whether there is nothing to restore.
  var isEmpty: Bool { get }
  /// Whether it does not contradict itself; what was read may be anything.
  var isSound: Bool { get }
  /// What is left where the whole is too large.
  var reduced: Self { get }
}

/// The contents of a file of saved state.
struct SavedState<Contents: SavedContents>: Codable, Equatable, Sendable {
  var format = SavedStateHeader.format
  var version = SavedStateHeader.version
  var role = Contents.role
  var identifier: String
  var contents: Contents

  init(identifier: String, contents: Contents) {
    self.identifier = identifier
    self.contents = contents
  }

  /// The octets of the file; without what can be found out again where they were too many.
  func encoded() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
    let whole = try encoder.encode(self)
    guard whole.count > SavedStateHeader.limit else { return whole }
    let reduced = try encoder.encode(Self(identifier: identifier, contents: contents.reduced))
    guard reduced.count <= SavedStateHeader.limit else {
      throw SavedStateError(words: "the state has more than \(SavedStateHeader.limit) octets")
    }
    return reduced
  }

  /// Reads the octets of a file; they may be anything.
  static func decode(_ octets: Data, identifier: String) throws -> Contents {
    let decoder = JSONDecoder()
    let header = try decoder.decode(SavedStateHeader.self, from: octets)
    guard header.format == SavedStateHeader.format else {
      throw SavedStateError(words: "it is no state of Core Bluetooth")
    }
    guard header.version == SavedStateHeader.version else {
      throw SavedStateError(words: "it is of version \(header.version), not \(SavedStateHeader.version)")
    }
    guard header.role == Contents.role, header.identifier == identifier else {
      throw SavedStateError(words: "it is the state of another manager")
    }
    let contents = try decoder.decode(Self.self, from: octets).contents
    guard contents.isSound else { throw SavedStateError(words: "it contradicts itself") }
    return contents
  }
}

/// What all files of saved state begin with.
struct SavedStateHeader: Codable, Equatable, Sendable {
  static let format = "CoreBluetooth state"
  static let version = 1
  /// The largest file.
  static let limit = 1 << 20

  var format: String
  var version: Int
  var role: String
  var identifier: String
}

/// Why a file of saved state is not used, or not written.
struct SavedStateError: Error, CustomStringConvertible {
  var words: String
  var description: String { words }
}

/// A UUID in the text of a file: 4, 8 or 32 hexadecimal digits, those as 8-4-4-4-12.
struct SavedUUID: Codable, Hashable, Sendable {
  var value: BluetoothUUID

  init(_ value: BluetoothUUID) { self.value = value }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    let digits = text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || isHexLetter($0) }
    switch text.utf8.count {
    case 4, 8:
      guard digits, let short = UInt32(text, radix: 16) else { break }
      value = BluetoothUUID(short)
      return
    case 36:
      guard let uuid = UUID(uuidString: text) else { break }
      value = BluetoothUUID(uuid)
      return
    default: break
    }
    throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(text.prefix(40)) is no UUID")
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(value.description)
  }
}

private func isHexLetter(_ octet: UInt8) -> Bool {
  switch octet {
  case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): true
  default: false
  }
}
