internal import Foundation

/// Something that is read from the object at the top of a JSON document.
protocol JSONReadable {
  init(reading reader: JSONReader) throws
}

/// Reads the members of one JSON object, and names the place in the document when something is wrong with one.
///
/// All errors are ``TransferError``s with the code `damagedState`.
struct JSONReader {
  /// A member's name or an element's number.
  struct Key: CodingKey {
    let stringValue: String
    let intValue: Int?
    init(stringValue: String) {
      self.stringValue = stringValue
      intValue = nil
    }
    init(intValue: Int) {
      stringValue = "\(intValue)"
      self.intValue = intValue
    }
  }

  private let container: KeyedDecodingContainer<Key>
  /// Where the object is: empty at the top, otherwise like `objects[2].`.
  private let prefix: String

  /// Reads a document.
  ///
  /// - Parameter document: what errors call it.
  static func read<Content: JSONReadable>(
    _ type: Content.Type, from text: Data, document: String
  ) throws(TransferError) -> Content {
    guard !text.isEmpty else {
      throw TransferError(.damagedState, "\(document) is empty")
    }
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let body = text.starts(with: mark) ? text.dropFirst(mark.count) : text
    try JSONGrammar.check(body, document: document)
    do {
      return try JSONDecoder().decode(Document<Content>.self, from: Data(body)).content
    } catch let error as TransferError {
      throw TransferError(error.code, "\(document): \(error.message)", advice: error.advice)
    } catch DecodingError.typeMismatch, DecodingError.valueNotFound {
      throw TransferError(.damagedState, "\(document) does not hold a JSON object at its top")
    } catch {
      throw TransferError(.damagedState, "\(document) is cut short or no JSON")
    }
  }

  private struct Document<Content: JSONReadable>: Decodable {
    let content: Content
    init(from decoder: any Decoder) throws {
      content = try Content(reading: JSONReader(container: decoder.container(keyedBy: Key.self), prefix: ""))
    }
  }

  private init(container: KeyedDecodingContainer<Key>, prefix: String) {
    self.container = container
    self.prefix = prefix
  }

  /// Checks `format` and `version`, before anything else is looked at.
  func checkHeader(format: String, version: Int) throws {
    guard try optionalText("format") == format else { throw fault("format", "is not \"\(format)\"") }
    let found = try integer("version")
    guard found == UInt64(version) else {
      throw TransferError(
        .damagedState, "version \(found) is not known, this program knows \(version)",
        advice: "use the program that wrote it, or a newer one")
    }
  }

  func text(_ key: String) throws -> String {
    guard let text = try optionalText(key) else { throw fault(key, "is missing") }
    return text
  }

  func optionalText(_ key: String) throws -> String? {
    try member(key, "text") { try container.decodeIfPresent(String.self, forKey: $0) }
  }

  func integer(_ key: String) throws -> UInt64 {
    let value = try member(key, "a whole number") { try container.decodeIfPresent(UInt64.self, forKey: $0) }
    guard let value else { throw fault(key, "is missing") }
    return value
  }

  func signedInteger(_ key: String) throws -> Int64 {
    let value = try member(key, "a whole number") { try container.decodeIfPresent(Int64.self, forKey: $0) }
    guard let value else { throw fault(key, "is missing") }
    return value
  }

  func digest(_ key: String) throws -> SHA256Digest {
    guard let digest = SHA256Digest(hex: try text(key)) else {
      throw fault(key, "is not 64 hexadecimal digits")
    }
    return digest
  }

  func optionalTime(_ key: String) throws -> Date? {
    guard let text = try optionalText(key) else { return nil }
    guard let date = try? Date(text, strategy: .iso8601) else {
      throw fault(key, "is no time like 2026-01-31T12:00:00Z")
    }
    return date
  }

  func time(_ key: String) throws -> Date {
    guard let date = try optionalTime(key) else { throw fault(key, "is missing") }
    return date
  }

  func optionalObject(_ key: String) throws -> JSONReader? {
    guard container.contains(Key(stringValue: key)) else { return nil }
    return try member(key, "an object") {
      JSONReader(
        container: try container.nestedContainer(keyedBy: Key.self, forKey: $0), prefix: "\(prefix)\(key).")
    }
  }

  func object(_ key: String) throws -> JSONReader {
    guard let object = try optionalObject(key) else { throw fault(key, "is missing") }
    return object
  }

  /// The elements of an array of objects, read one by one.
  func objects<Element>(_ key: String, most: Int, _ body: (JSONReader) throws -> Element) throws -> [Element]
  {
    guard container.contains(Key(stringValue: key)) else { throw fault(key, "is missing") }
    var elements = try member(key, "an array") {
      try container.nestedUnkeyedContainer(forKey: $0)
    }
    var results: [Element] = []
    while !elements.isAtEnd {
      let place = "\(key)[\(results.count)]"
      guard results.count < most else { throw fault(key, "has more than \(most) elements") }
      let element = try member(place, "an object") { _ in try elements.nestedContainer(keyedBy: Key.self) }
      results.append(try body(JSONReader(container: element, prefix: "\(prefix)\(place).")))
    }
    return results
  }

  /// The elements of an array of texts.
  func texts(_ key: String, most: Int) throws -> [String] {
    guard container.contains(Key(stringValue: key)) else { throw fault(key, "is missing") }
    let texts = try member(key, "an array of text") { try container.decode([String].self, forKey: $0) }
    guard texts.count <= most else { throw fault(key, "has more than \(most) elements") }
    return texts
  }

  /// All members, which must be text.
  func texts(most: Int) throws -> [String: String] {
    guard container.allKeys.count <= most else { throw fault(nil, "has more than \(most) members") }
    var texts: [String: String] = [:]
    for key in container.allKeys { texts[key.stringValue] = try text(key.stringValue) }
    return texts
  }

  /// Makes a value from what was read; what it objects to is an error of this place.
  func making<Value>(_ key: String? = nil, _ body: () throws(TransferError) -> Value) throws(TransferError)
    -> Value
  {
    do {
      return try body()
    } catch {
      throw fault(key, "is not valid: \(error.message)")
    }
  }

  /// An error that names the place.
  func fault(_ key: String?, _ what: String) -> TransferError {
    let place = key.map { prefix + $0 } ?? String(prefix.dropLast())
    return TransferError(.damagedState, "\(place.isEmpty ? "the document" : place.printable) \(what)")
  }

  private func member<Value>(_ key: String, _ expected: String, _ body: (Key) throws -> Value) throws -> Value
  {
    do {
      return try body(Key(stringValue: key))
    } catch {
      // Numbers that do not fit come as an error of a private type.
      throw fault(key, "is not \(expected)")
    }
  }
}
