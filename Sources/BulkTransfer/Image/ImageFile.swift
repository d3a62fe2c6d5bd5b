internal import Foundation

/// A file that the user gives to be sent: recognised by its contents, and either understood or refused with a sentence that says what it is
/// and what to do. Formats and rules: `docs/files.md`.
public final class ImageFile: Sendable {
  /// How a file is to be understood.
  public struct Options: Hashable, Sendable {
    /// Whether it is sent as it is, whatever it looks like.
    public var treatsAsRaw: Bool
    /// The addresses to take from an Intel HEX file; nil for all.
    public var range: AddressRange?

    public init(treatsAsRaw: Bool = false, range: AddressRange? = nil) {
      self.treatsAsRaw = treatsAsRaw
      self.range = range
    }
  }

  /// What the file is.
  public let inspection: FileInspection
  /// The bytes to be sent.
  public let source: any ByteSource
  /// How it was to be understood.
  public let options: Options

  /// Opens a file to send it.
  ///
  /// - Throws: `unusableFile`, `malformedFile` or `invalidArgument`, with what the file is and what to do.
  public init(path: String, options: Options = Options()) throws(TransferError) {
    let examination = try FileExamination(FileSource(path: path), options)
    if let obstacle = examination.inspection.obstacle { throw obstacle }
    guard let source = examination.image else {
      throw TransferError(.unusableFile, "\(path.printable) holds nothing that can be sent")
    }
    self.source = source
    self.options = options
    inspection = examination.inspection
  }

  /// Finds out what a file is.
  ///
  /// - Returns: also for files that cannot be sent; ``FileInspection/obstacle`` says why.
  /// - Throws: `unusableFile` for what is no readable, non-empty regular file.
  public static func inspect(
    path: String, options: Options = Options()
  ) throws(TransferError) -> FileInspection {
    try FileExamination(FileSource(path: path), options).inspection
  }

  /// Describes what is sent, reading it once.
  ///
  /// - Parameters:
  ///   - name: what the receiver is to call it; nil for the last component of the path.
  ///   - path: the path to record; nil for the one that was opened.
  ///   - progress: told the number of bytes read so far; ends the work by throwing.
  public func describe(
    name: String? = nil, path: String? = nil, segmentSize: Int? = nil,
    progress: (UInt64) throws(TransferError) -> Void = { _ in }
  ) throws(TransferError) -> TransferManifest.Object {
    try TransferManifest.Object(
      describing: source, name: name ?? inspection.path.splitLastComponent.name,
      path: path ?? inspection.path,
      format: inspection.format, range: options.range, segmentSize: segmentSize, progress: progress)
  }
}

extension TransferManifest.Object {
  /// Opens the file of this object, in the way in which it was described.
  ///
  /// - Parameter folder: where a relative path starts: the folder of the manifest.
  /// - Throws: what ``ImageFile/init(path:options:)`` throws, and `unusableFile` if the file has another format now.
  public func openImage(in folder: String = "") throws(TransferError) -> ImageFile {
    let path = resolvedPath(in: folder)
    let options = ImageFile.Options(treatsAsRaw: format == .raw, range: range)
    let image = try ImageFile(path: path, options: options)
    guard image.inspection.format == format else {
      throw TransferError(
        .unusableFile,
        "\(path.printable) has changed: it was \(format.title) and is \(image.inspection.format.title)",
        advice: "make the manifest anew, or bring the file back")
    }
    return image
  }
}
