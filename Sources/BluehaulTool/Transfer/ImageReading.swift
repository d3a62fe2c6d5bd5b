internal import BulkTransfer

extension Invocation {
  /// Reads what a file sends, for its checksums: says so where that takes a while, and ends where the run was interrupted.
  func describe(
    _ image: ImageFile, name: String? = nil, path: String? = nil, segmentSize: Int? = nil,
    isTold: Bool = true
  ) throws(TransferError) -> TransferManifest.Object {
    if isTold, image.source.size >= Report.longReading {
      printer.show(.reading(image.inspection.path, size: Int(clamping: image.source.size)))
    }
    return try image.describe(name: name, path: path, segmentSize: segmentSize) { _ throws(TransferError) in
      if Task.isCancelled { throw TransferError(.cancelled, "interrupted while a file was read") }
    }
  }
}

extension Report {
  /// From how many bytes on it is said that a file is read.
  static let longReading: UInt64 = 1 << 30

  fileprivate static func reading(_ path: String, size: Int) -> Report {
    Report(
      "reading", .note, ["reading \(Printable.text(path)), \(Amounts.bytes(size)), for its checksums"],
      [.init("path", .string(path)), .init("size", .integer(size))])
  }
}
