internal import BulkTransfer
internal import Foundation

/// The files that `bench` writes, looked at before anything is measured.
struct BenchFiles {
  private let table: OutputFile?
  private let chart: OutputFile?

  /// - Throws: what ``OutputFile`` refuses, and `invalidArgument` where two options name one file.
  init(_ arguments: ParsedArguments) throws(TransferError) {
    table = try Self.file(arguments[BenchCommand.csv], .table)
    chart = try Self.file(arguments[BenchCommand.plot], .chart)
    let files = [
      (BenchCommand.csv.declaration.usage, table), (BenchCommand.plot.declaration.usage, chart),
      (RadioOptions.capture.declaration.usage, try Self.file(arguments[RadioOptions.capture], .capture)),
    ]
    for (index, first) in files.enumerated() {
      for second in files.dropFirst(index + 1) {
        guard let one = first.1, let other = second.1, one.isSame(as: other) else { continue }
        throw TransferError(
          .invalidArgument, "\(first.0) and \(second.0) name the same file, \(Printable.text(other.path))",
          advice: "give each a file of its own")
      }
    }
    try table?.prepare()
    try chart?.prepare()
  }

  private static func file(_ path: String?, _ kind: OutputFile.Kind) throws(TransferError) -> OutputFile? {
    guard let path else { return nil }
    return try OutputFile(path: path, kind: kind)
  }

  func write<Result: BenchMeasurement>(
    _ results: [Result], telling printer: any EventPrinter
  ) throws(TransferError) {
    for (file, text) in [(table, Result.csv), (chart, Result.svg)] {
      guard let file else { continue }
      try file.write(Data(text(results).utf8))
      printer.show(.wrote(file.path))
    }
  }
}

extension OutputFile.Kind {
  /// Tables of `bench`, by their first row.
  static let table = Self("table of bluehaul bench") { head in
    guard let end = head.firstRange(of: Data("\r\n".utf8)) else { return false }
    let names = String(decoding: head[..<end.lowerBound], as: UTF8.self).split(separator: ",")
    return names.first == "via" && names.contains("seconds") && names.contains("ratio")
  }
}

extension Report {
  fileprivate static func wrote(_ path: String) -> Report {
    Report("wrote", .note, ["wrote \(Printable.text(path))"], [.init("path", .string(path))])
  }
}
