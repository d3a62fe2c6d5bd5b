public import Foundation

/// What is to be moved: objects with their checksums, and the device they are for; `docs/manifest.md` gives its form as JSON.
public struct TransferManifest: Hashable, Sendable {
  /// The version that this program writes and reads.
  public static let version = 1
  /// A longer text is refused unread, in bytes.
  public static let longestText = 1 << 24
  /// The most objects in one manifest.
  public static let mostObjects = 1024

  /// The device that a transfer is for, by one or both of its names.
  public struct Target: Hashable, Sendable {
    /// The name that the device advertises.
    public let name: String?
    /// What the adapter knows the device by (`CBPeripheral.identifier`).
    public let identifier: String?

    /// - Throws: `invalidArgument` if both are missing, or one is empty or too long.
    public init(name: String? = nil, identifier: String? = nil) throws(TransferError) {
      guard name != nil || identifier != nil else {
        throw TransferError(.invalidArgument, "a target has a name or an identifier")
      }
      try checkLength(name, 1...248, "the target's name")
      try checkLength(identifier, 1...64, "the target's identifier")
      self.name = name
      self.identifier = identifier
    }
  }

  /// One file, or the part of it that is sent.
  public struct Object: Hashable, Sendable {
    /// The most bytes of an object.
    public static let largestSize: UInt64 = 1 << 40
    /// The most bytes of a name, as UTF-8.
    public static let longestName = 200

    /// What the receiver is to call it.
    public let name: String
    /// The file; if relative, from the folder of the manifest.
    public let path: String
    /// How the bytes come from the file.
    public let format: ImageFormat
    /// The addresses taken from an Intel HEX file; nil for all.
    public let range: AddressRange?
    /// SHA-256 of the object's bytes.
    public let sha256: SHA256Digest
    /// The segments with their checksums.
    public let segments: SegmentTable

    /// Size in bytes.
    public var size: UInt64 { segments.objectSize }

    /// - Throws: `invalidArgument`, naming the field, if one is outside of its limits.
    public init(
      name: String, path: String, format: ImageFormat, range: AddressRange? = nil, sha256: SHA256Digest,
      segments: SegmentTable
    ) throws(TransferError) {
      try checkLength(name, 1...Self.longestName, "the object's name")
      try checkLength(path, 1...4096, "the object's path")
      guard format.isPushable else {
        throw TransferError(.invalidArgument, "files of format \(format.rawValue) are not sent")
      }
      guard range == nil || format == .intelHEX else {
        throw TransferError(.invalidArgument, "a range is for Intel HEX files alone")
      }
      guard (1...Self.largestSize).contains(segments.objectSize) else {
        throw TransferError(
          .invalidArgument, "an object has 1 to \(Self.largestSize) bytes, not \(segments.objectSize)")
      }
      self.name = name
      self.path = path
      self.format = format
      self.range = range
      self.sha256 = sha256
      self.segments = segments
    }

    /// Where the file is, for a manifest that lies in `folder`.
    public func resolvedPath(in folder: String) -> String {
      path.hasPrefix("/") || folder.isEmpty ? path : "\(folder)/\(path)"
    }
  }

  /// What is sent, in this order.
  public let objects: [Object]
  /// Whom it is for; nil if that is open.
  public let target: Target?
  /// When it was made.
  public let created: Date?
  /// Identity of the contents: equal for equal bytes in equal order, whatever their names are.
  public let transferID: SHA256Digest

  /// - Throws: `invalidArgument` unless there are 1 to 1024 objects, each with a name of its own.
  public init(objects: [Object], target: Target? = nil, created: Date? = nil) throws(TransferError) {
    guard (1...Self.mostObjects).contains(objects.count) else {
      throw TransferError(
        .invalidArgument, "a manifest has 1 to \(Self.mostObjects) objects, not \(objects.count)")
    }
    try checkNames(objects.map { ($0.name, $0.path) })
    self.objects = objects
    self.target = target
    self.created = created
    transferID = try Self.transferID(of: objects.map { ($0.size, $0.sha256) })
  }

  /// Size of all objects together, in bytes.
  public var totalSize: UInt64 { objects.reduce(0) { $0 + $1.size } }

  /// The identity of contents, from the size and hash of each object.
  static func transferID(of objects: [(UInt64, SHA256Digest)]) throws(TransferError) -> SHA256Digest {
    let text = "bluehaul transfer 1\n" + objects.map { "\($0.0) \($0.1.hex)\n" }.joined()
    return try SHA256Hasher.digest(of: Data(text.utf8))
  }
}

/// Refuses two objects of one name: a receiver would keep the one in place of the other, or neither let be.
func checkNames(_ objects: [(name: String, path: String)]) throws(TransferError) {
  var paths: [String: String] = [:]
  for object in objects {
    guard let earlier = paths.updateValue(object.path, forKey: object.name) else { continue }
    let files =
      earlier == object.path
      ? "\(earlier.printable) is there twice"
      : "\(earlier.printable) and \(object.path.printable) are two files"
    throw TransferError(
      .invalidArgument, "\(files) and would be one at the receiver, named \(object.name.printable)",
      advice: "send each once, and files of one name one by one, each under a name of its own")
  }
}

/// Refuses text whose UTF-8 form is too short or too long.
func checkLength(_ text: String?, _ allowed: ClosedRange<Int>, _ what: String) throws(TransferError) {
  guard let count = text?.utf8.count, !allowed.contains(count) else { return }
  throw TransferError(
    .invalidArgument, "\(what) has \(count) bytes, allowed are \(allowed.lowerBound) to \(allowed.upperBound)"
  )
}
