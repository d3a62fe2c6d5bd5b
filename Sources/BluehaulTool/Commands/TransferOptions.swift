internal import BulkTransfer

/// Options of the commands that send.
enum TransferOptions {
  static let via = Option(
    "via", .oneOf(CarrierChoice.self),
    "What carries the data: an L2CAP channel where there is one, or as said (auto)")
  static let timeout = Option(
    "timeout", .duration(in: .milliseconds(100)...(.seconds(86400))),
    "How long each step may go without any confirmation, not the whole (10s)")
  static let segment = Option(
    "segment", .segmentSize, "How much the receiver verifies at a time: a power of two, 4KiB to 1MiB (4KiB)")
  static let window = Option(
    "window", .size(in: 512...(1 << 30)), "How much may be unconfirmed at most (256KiB)")
  static let receipts = Option(
    "receipts", .size(in: 256...(1 << 24)), "After how much the receiver sends a receipt at the latest (4KiB)"
  )
  static let packet = Option(
    "packet", .count(in: 20...65535), "The longest data packet in bytes (what the link takes)")
  static let attempts = Option(
    "attempts", .count(in: 1...1_000_000), "Connections in a row without progress before giving up (5)")

  static let compress = Option(
    "compress", .oneOf(Compression.self),
    "Whether files travel compressed to a receiver that can decode it; auto: those of which the first 256 KiB shrink (auto)"
  )
  static let base = Option(
    "base", .text("OLD"),
    "The file that the receiver has now: only what changed against it travels, if the receiver proves that it holds it"
  )

  static let codingSection = CommandDeclaration.Section(
    title: "Fewer bytes", options: [compress.declaration, base.declaration])

  static let section = CommandDeclaration.Section(
    title: "Transfer options",
    options: [
      via.declaration, timeout.declaration, attempts.declaration, segment.declaration, window.declaration,
      receipts.declaration, packet.declaration,
    ])

  static let raw = Flag("raw", "Take files as plain bytes, whatever they look like")
  static let range = Option(
    "range", .addressRange, "Addresses to take from an Intel HEX file: 0x26000-0x3FFFF or 0x26000+64KiB")

  static func image(_ arguments: ParsedArguments) -> ImageFile.Options {
    ImageFile.Options(treatsAsRaw: arguments[raw], range: arguments[range])
  }

  static func push(_ arguments: ParsedArguments) throws(TransferError) -> PushOptions {
    var options = PushOptions()
    options.haul = try haul(arguments)
    if let choice = arguments[via] { options.link.choice = choice }
    if let limit = arguments[timeout] { options.link.stepLimit = limit }
    if let count = arguments[attempts] { options.link.connection.fruitlessAttempts = count }
    return options
  }

  private static func haul(_ arguments: ParsedArguments) throws(TransferError) -> HaulConfiguration {
    var configuration = HaulConfiguration()
    if let size = arguments[segment] {
      configuration.segmentPower = UInt8(size.trailingZeroBitCount)
      configuration.codedSegmentPower = configuration.segmentPower
    }
    if let size = arguments[receipts] { configuration.receiptInterval = size }
    if let size = arguments[window] {
      configuration.maximumWindow = size
      configuration.initialWindow = min(configuration.initialWindow, size)
      configuration.minimumWindow = min(configuration.minimumWindow, size)
    }
    if let length = arguments[packet] { configuration.packetLimit = length }
    if let limit = arguments[timeout] { configuration.idleLimit = limit }
    return try configuration.checked()
  }
}

extension ValueSyntax where Value == Int {
  /// A power of two from 4 KiB to 1 MiB.
  static var segmentSize: Self {
    Self("SIZE") { text throws(InvalidValue) in
      let size = try ValueSyntax<Int>.size(in: SegmentTable.allowedSizes).read(text)
      guard size.nonzeroBitCount == 1 else {
        throw InvalidValue("is not a power of two such as 4KiB, 16KiB or 64KiB")
      }
      return size
    }
  }
}
