public import Foundation

extension TransferRecord {
  private static let formatName = "bluehaul-journal"
  private static let mostFacts = 64
  /// The most bytes of a word in `link`.
  public static let longestFact = 256
  private static let longestMessage = 1024

  /// The record as JSON text, byte for byte as `docs/manifest.md` says.
  public func encoded() -> Data {
    // Longer facts would make a record that no reader takes.
    let facts = link.sorted { $0.key < $1.key }.prefix(Self.mostFacts).map { fact in
      (fact.key.cut(to: Self.longestFact), JSONText.Value?.some(.text(fact.value.cut(to: Self.longestFact))))
    }
    let failure = lastError.map { failure in
      JSONText.Value.object([
        ("code", .text(failure.code.rawValue.cut(to: Self.longestFact))),
        ("message", .text(failure.message.cut(to: Self.longestMessage))),
      ])
    }
    return JSONText.encode(
      .object([
        ("format", .text(Self.formatName)),
        ("version", .number(Self.version)),
        ("transferID", .text(transferID.hex)),
        ("device", device.json),
        ("started", .time(started)),
        ("updated", .time(updated)),
        ("lastError", failure),
        ("link", facts.isEmpty ? nil : .object(facts)),
        ("objects", .array(objects.map(\.json))),
      ]))
  }

  /// Reads JSON text.
  ///
  /// - Throws: `damagedState`, naming the place in the text.
  public init(decoding text: Data, document: String = "the journal") throws(TransferError) {
    self = try JSONReader.read(Self.self, from: text, document: document.printable)
  }
}

extension TransferRecord: JSONReadable {
  init(reading reader: JSONReader) throws {
    try reader.checkHeader(format: Self.formatName, version: Self.version)
    let device = try TransferManifest.Target(reading: reader.object("device"))
    let (started, updated) = (try reader.time("started"), try reader.time("updated"))
    let failure = try reader.optionalObject("lastError").map { reader in
      Failure(code: .init(rawValue: try reader.text("code")), message: try reader.text("message"))
    }
    let facts = try reader.optionalObject("link")?.texts(most: Self.mostFacts) ?? [:]
    let objects = try reader.objects("objects", most: TransferManifest.mostObjects) {
      try Object(reading: $0)
    }
    let record = try reader.making("objects") { () throws(TransferError) in
      try TransferRecord(
        device: device, objects: objects, started: started, updated: updated, lastError: failure, link: facts)
    }
    guard try reader.digest("transferID") == record.transferID else {
      throw reader.fault("transferID", "does not belong to the sizes and hashes of the objects")
    }
    self = record
  }
}

extension TransferRecord.Object: JSONReadable {
  var json: JSONText.Value {
    .object([
      ("name", .text(name)),
      ("path", .text(path)),
      ("format", .text(format.rawValue)),
      ("range", range.map { .text($0.description) }),
      ("fileSize", .number(fileSize)),
      ("fileModified", .number(fileModified)),
      ("size", .number(size)),
      ("sha256", .text(sha256.hex)),
      ("confirmed", .number(confirmed)),
    ])
  }

  init(reading reader: JSONReader) throws {
    self.init(
      name: try reader.text("name"), path: try reader.text("path"), format: try ImageFormat(reading: reader),
      range: try AddressRange.optional(reading: reader), fileSize: try reader.integer("fileSize"),
      fileModified: try reader.signedInteger("fileModified"), size: try reader.integer("size"),
      sha256: try reader.digest("sha256"), confirmed: try reader.integer("confirmed"))
  }
}

extension String {
  /// The longest beginning of at most `count` UTF-8 bytes that cuts no character.
  func cut(to count: Int) -> String {
    guard utf8.count > count else { return self }
    var text = ""
    var used = 0
    for character in self {
      used += character.utf8.count
      if used > count { break }
      text.append(character)
    }
    return text
  }
}
