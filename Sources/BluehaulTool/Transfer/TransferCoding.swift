internal import BulkTransfer
internal import Foundation

/// How the files of a push may be coded: what the options say, or what the journal of an earlier run does.
struct TransferCoding {
  /// The fact of a journal that names the base.
  private static let fact = "base"

  var compression = Compression.never
  /// The base as it was given, and its image.
  private(set) var base: (path: String, image: ImageFile)?

  /// Nothing is coded.
  init() {}

  /// - Parameter former: the facts of an earlier run; a base that it names and that is gone is done without.
  /// - Throws: where options contradict each other, and where the base cannot be read.
  init(
    _ arguments: ParsedArguments, command: String, objects: Int, former: [String: String] = [:]
  ) throws {
    let given = arguments[TransferOptions.base]
    compression = arguments[TransferOptions.compress] ?? .auto
    if given != nil {
      guard compression != .never else {
        throw UsageError(
          "--base sends what changed, coded: it does not go with --compress never", command: command)
      }
      guard objects == 1 else {
        throw UsageError("--base is for one file, not for \(objects)", command: command)
      }
    }
    guard compression != .never, objects == 1 else { return }
    let options = ImageFile.Options(
      treatsAsRaw: arguments[TransferOptions.raw], range: arguments[TransferOptions.range])
    if let given {
      base = (given, try ImageFile(path: given, options: options))
    } else if let path = former[Self.fact], let image = try? ImageFile(path: path, options: options) {
      base = (path, image)
    }
  }

  /// What a journal keeps, for the command that goes on.
  var facts: [String: String] {
    guard let base else { return [:] }
    let path = ManifestCommand.absolute(base.path)
    return path.utf8.count <= TransferRecord.longestFact ? [Self.fact: path] : [:]
  }
}

extension Report {
  /// How the stream of a file is coded; `base` where one was given.
  static func coding(_ coding: StreamCoding, of name: String, base: String?) -> Report {
    let object = Printable.text(name)
    let words: String
    var level = Level.detail
    switch (coding, base) {
    case (.changes, let base):
      words = "sending what changed in \(object) since \(Printable.text(base ?? "the base"))"
      level = .note
    case (_, .some(let base)):
      words = "the receiver does not hold \(Printable.text(base)); sending the whole of \(object)"
      level = .note
    case (.compressed, nil): words = "sending \(object) compressed"
    case (.uncoded, nil): words = "sending \(object) as it is"
    }
    return Report(
      "coding", level, [words],
      [
        .init("object", .string(name)), .init("coding", .string(coding.rawValue)),
        .init("base", .optional(base)),
      ])
  }
}
