public import Foundation

extension TransferManifest {
  fileprivate static let formatName = "bluehaul-manifest"

  /// The manifest as JSON text, byte for byte as `docs/manifest.md` says.
  ///
  /// - Throws: `invalidArgument` for a text that ``init(decoding:document:)`` would refuse as too long: files of many segments.
  public func encoded() throws(TransferError) -> Data {
    // The checksums, four octets each in base64, are what can make it long.
    try checkLength(objects.reduce(0) { $0 + $1.segments.checksums.count * 16 / 3 })
    let text = JSONText.encode(
      .object([
        ("format", .text(Self.formatName)),
        ("version", .number(Self.version)),
        ("created", created.map { .time($0) }),
        ("transferID", .text(transferID.hex)),
        ("target", target?.json),
        ("objects", .array(objects.map(\.json))),
      ]))
    try checkLength(text.count)
    return text
  }

  private func checkLength(_ count: Int) throws(TransferError) {
    guard count <= Self.longestText else {
      throw TransferError(
        .invalidArgument,
        "the manifest would have \(count) bytes or more, a manifest has at most \(Self.longestText)",
        advice: "take larger segments, or describe the files in several manifests")
    }
  }

  /// Reads JSON text.
  ///
  /// - Parameter document: what errors call it, such as the path of the file.
  /// - Throws: `damagedState`, naming the place in the text, for a manifest that is cut short, breaks a rule, or has an unknown version.
  public init(decoding text: Data, document: String = "the manifest") throws(TransferError) {
    guard text.count <= Self.longestText else {
      throw TransferError(
        .damagedState,
        "\(document.printable) has \(text.count) bytes, a manifest has at most \(Self.longestText)")
    }
    self = try JSONReader.read(Self.self, from: text, document: document.printable)
  }

  /// Reads the manifest at `path`.
  public init(path: String) throws(TransferError) {
    let source = try FileSource(path: path)
    guard source.size <= UInt64(Self.longestText) else {
      throw TransferError(
        .damagedState,
        "\(path.printable) has \(source.size) bytes, a manifest has at most \(Self.longestText)",
        advice: "name the manifest, not the image")
    }
    var text = Data()
    try source.forEachBlock(step: FileSource.longestRead) { text.append($0) }
    try self.init(decoding: text, document: path)
  }

  /// Writes the manifest to `path`, whole or not at all, in the way of ``OutputFile``.
  public func write(to path: String) throws(TransferError) {
    try OutputFile(path: path, kind: .manifest).write(encoded())
  }

  /// What a text has to have to be a manifest, of whatever version.
  fileprivate struct Header: JSONReadable {
    init(reading reader: JSONReader) throws {
      guard try reader.optionalText("format") == TransferManifest.formatName else {
        throw reader.fault("format", "is another one")
      }
    }
  }
}

extension OutputFile.Kind {
  /// Manifests, of whatever version.
  public static let manifest = Self("manifest", headLength: TransferManifest.longestText) { text in
    (try? JSONReader.read(TransferManifest.Header.self, from: text, document: "")) != nil
  }
}

extension TransferManifest: JSONReadable {
  init(reading reader: JSONReader) throws {
    try reader.checkHeader(format: Self.formatName, version: Self.version)
    let created = try reader.optionalTime("created")
    let target = try reader.optionalObject("target").map { try Target(reading: $0) }
    let objects = try reader.objects("objects", most: Self.mostObjects) { try Object(reading: $0) }
    let manifest = try reader.making("objects") { () throws(TransferError) in
      try TransferManifest(objects: objects, target: target, created: created)
    }
    guard try reader.digest("transferID") == manifest.transferID else {
      throw reader.fault("transferID", "does not belong to the sizes and hashes of the objects")
    }
    self = manifest
  }
}

extension TransferManifest.Target: JSONReadable {
  var json: JSONText.Value {
    .object([
      ("name", name.map { .text($0) }),
      ("identifier", identifier.map { .text($0) }),
    ])
  }

  init(reading reader: JSONReader) throws {
    let (name, identifier) = (try reader.optionalText("name"), try reader.optionalText("identifier"))
    self = try reader.making { () throws(TransferError) in try Self(name: name, identifier: identifier) }
  }
}

extension TransferManifest.Object: JSONReadable {
  var json: JSONText.Value {
    .object([
      ("name", .text(name)),
      ("path", .text(path)),
      ("format", .text(format.rawValue)),
      ("range", range.map { .text($0.description) }),
      ("size", .number(size)),
      ("sha256", .text(sha256.hex)),
      ("segmentSize", .number(segments.segmentSize)),
      ("segmentCRC32C", .text(segments.base64)),
    ])
  }

  init(reading reader: JSONReader) throws {
    let (name, path) = (try reader.text("name"), try reader.text("path"))
    let (format, range) = (try ImageFormat(reading: reader), try AddressRange.optional(reading: reader))
    let (size, sha256) = (try reader.integer("size"), try reader.digest("sha256"))
    let segmentSize = Int(clamping: try reader.integer("segmentSize"))
    guard let checksums = SegmentTable.checksums(base64: try reader.text("segmentCRC32C")) else {
      throw reader.fault("segmentCRC32C", "is not base64 of whole words of 4 bytes")
    }
    let segments = try reader.making("segmentCRC32C") { () throws(TransferError) in
      try SegmentTable(segmentSize: segmentSize, objectSize: size, checksums: checksums)
    }
    self = try reader.making { () throws(TransferError) in
      try Self(name: name, path: path, format: format, range: range, sha256: sha256, segments: segments)
    }
  }
}

extension ImageFormat {
  /// Reads the member `format`.
  init(reading reader: JSONReader) throws {
    guard let format = Self(rawValue: try reader.text("format")) else {
      throw reader.fault("format", "is no known format")
    }
    self = format
  }
}

extension AddressRange {
  /// Reads the member `range` if there is one.
  static func optional(reading reader: JSONReader) throws -> Self? {
    guard let text = try reader.optionalText("range") else { return nil }
    return try reader.making("range") { () throws(TransferError) in try Self(parsing: text) }
  }
}
