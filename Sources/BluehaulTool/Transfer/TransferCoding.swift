internal import BulkTransfer
internal import Foundation

/// How the files of a push may be coded: what the options say, or what the journal of an earlier run does.
struct TransferCoding {
  /// The facts of a journal about it.
  private enum Fact {
    static let compression = "compress"
    static let base = "base"
    static let baseRaw = "base-raw"
    static let baseRange = "base-range"
  }

  private(set) var compression = Compression.never
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
    let earlier = given == nil ? former[Fact.compression].flatMap(Compression.init(rawValue:)) : nil
    compression = arguments[TransferOptions.compress] ?? earlier ?? .auto
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
    if let given {
      base = (given, try Self.open(given, TransferOptions.image(arguments)))
    } else if let path = former[Fact.base] {
      let options = ImageFile.Options(
        treatsAsRaw: former[Fact.baseRaw] != nil,
        range: former[Fact.baseRange].flatMap { try? AddressRange(parsing: $0) })
      if let image = try? Self.open(path, options) { base = (path, image) }
    }
  }

  /// Opens a base. Addresses are taken from an Intel HEX file; of a base of another kind, all is taken.
  private static func open(_ path: String, _ options: ImageFile.Options) throws(TransferError) -> ImageFile {
    var options = options
    if options.range != nil {
      let kind = ImageFile.Options(treatsAsRaw: options.treatsAsRaw)
      if try ImageFile.inspect(path: path, options: kind).format != .intelHEX { options.range = nil }
    }
    return try ImageFile(path: path, options: options)
  }

  /// What a journal keeps, for the command that goes on.
  var facts: [String: String] {
    var facts = [Fact.compression: compression.rawValue]
    guard let base else { return facts }
    let path = ManifestCommand.absolute(base.path)
    guard path.utf8.count <= TransferRecord.longestFact else { return facts }
    facts[Fact.base] = path
    if base.image.options.treatsAsRaw { facts[Fact.baseRaw] = "yes" }
    if let range = base.image.options.range { facts[Fact.baseRange] = range.description }
    return facts
  }
}

extension Report {
  /// How the stream of a file is coded.
  ///
  /// - Parameters:
  ///   - base: the file that was given as base.
  ///   - shortfall: why that is less than was asked for, if it is.
  ///   - insists: whether compression was asked for in so many words.
  static func coding(
    _ coding: StreamCoding, of name: String, base: String? = nil, shortfall: CodingShortfall? = nil,
    insists: Bool = false
  ) -> Report {
    let object = Printable.text(name)
    let words: String
    switch (coding, base.map { Printable.text($0) }) {
    case (.changes, let base):
      words = "sending what changed in \(object) since \(base ?? "the base")"
    case (_, .some(let base)):
      let why =
        switch shortfall {
        case .notHeld: "the receiver does not hold \(base); "
        case .notSupported: "the receiver uses no bases; "
        case .failed: "what changed in \(object) since \(base) did not get through; "
        case nil: ""
        }
      words = why + "sending the whole of \(object)" + (coding == .compressed ? ", compressed" : "")
    case (.compressed, nil): words = "sending \(object) compressed"
    case (.uncoded, nil):
      let why =
        switch shortfall {
        case .notSupported: "the receiver takes nothing compressed; "
        case .failed: "what was compressed of \(object) did not get through; "
        case .notHeld, nil: ""
        }
      words = why + "sending \(object) as it is"
    }
    let isAsked = base != nil || (insists && shortfall != nil)
    return Report(
      "coding", isAsked ? .note : .detail, [words],
      [
        .init("object", .string(name)), .init("coding", .string(coding.rawValue)),
        .init("base", .optional(base)), .init("shortfall", .optional(shortfall?.rawValue)),
      ])
  }
}
