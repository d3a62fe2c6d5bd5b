public import Foundation

/// How far one transfer got with one device; `docs/manifest.md` gives its form as JSON.
public struct TransferRecord: Hashable, Sendable {
  /// The version that this program writes and reads.
  public static let version = 1

  /// Where one object comes from and how much of it the device holds.
  public struct Object: Hashable, Sendable {
    /// What the receiver is to call it.
    public var name: String
    /// The file, as an absolute path.
    public var path: String
    /// How the bytes come from the file.
    public var format: ImageFormat
    /// The addresses taken from an Intel HEX file; nil for all.
    public var range: AddressRange?
    /// Size of the file in bytes when the transfer began.
    public var fileSize: UInt64
    /// Time of the file's last change then, in nanoseconds since 1970.
    public var fileModified: Int64
    /// Size of the object in bytes.
    public var size: UInt64
    /// SHA-256 of the object; decides whether the file is still the same.
    public var sha256: SHA256Digest
    /// Bytes from the start that the device last called durable.
    public var confirmed: UInt64

    public init(
      name: String, path: String, format: ImageFormat, range: AddressRange? = nil, fileSize: UInt64,
      fileModified: Int64, size: UInt64, sha256: SHA256Digest, confirmed: UInt64 = 0
    ) {
      self.name = name
      self.path = path
      self.format = format
      self.range = range
      self.fileSize = fileSize
      self.fileModified = fileModified
      self.size = size
      self.sha256 = sha256
      self.confirmed = confirmed
    }
  }

  /// Why the last attempt ended.
  public struct Failure: Hashable, Sendable {
    /// The kind of the error.
    public var code: TransferError.Code
    /// What happened, in a sentence.
    public var message: String

    public init(code: TransferError.Code, message: String) {
      self.code = code
      self.message = message
    }

    /// The part of an error that is kept.
    public init(_ error: TransferError) { self.init(code: error.code, message: error.message) }
  }

  /// Identity of the contents.
  public let transferID: SHA256Digest
  /// The device.
  public let device: TransferManifest.Target
  /// When the first attempt began.
  public let started: Date
  /// When this record was last written.
  public var updated: Date
  /// Why the last attempt ended; nil while one is under way.
  public var lastError: Failure?
  /// Facts of the last connection, for a person to read.
  public var link: [String: String]
  /// The objects, in the order of sending.
  public var objects: [Object]

  /// A record of a transfer that begins at `started`.
  ///
  /// - Throws: `invalidArgument` unless there are 1 to 1024 objects, each with an absolute path and no more confirmed than its size.
  public init(
    device: TransferManifest.Target, objects: [Object], started: Date, updated: Date? = nil,
    lastError: Failure? = nil, link: [String: String] = [:]
  ) throws(TransferError) {
    guard (1...TransferManifest.mostObjects).contains(objects.count) else {
      throw TransferError(
        .invalidArgument, "a record has 1 to \(TransferManifest.mostObjects) objects, not \(objects.count)")
    }
    for object in objects {
      guard object.path.hasPrefix("/") else {
        throw TransferError(.invalidArgument, "the path \(object.path.printable) is not absolute")
      }
      guard object.confirmed <= object.size else {
        throw TransferError(
          .invalidArgument, "\(object.confirmed) bytes are confirmed of an object of \(object.size)")
      }
    }
    self.device = device
    self.objects = objects
    self.started = started
    self.updated = updated ?? started
    self.lastError = lastError
    self.link = link
    transferID = try TransferManifest.transferID(of: objects.map { ($0.size, $0.sha256) })
  }

  /// Size of all objects together, in bytes.
  public var totalSize: UInt64 { objects.reduce(0) { $0 &+ $1.size } }
  /// Bytes that the device last called durable, of all objects.
  public var confirmed: UInt64 { objects.reduce(0) { $0 &+ $1.confirmed } }
}
