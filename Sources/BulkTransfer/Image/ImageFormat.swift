/// What a file is, found from its contents; the name of a file counts for nothing.
public enum ImageFormat: String, Hashable, Sendable, CaseIterable, Codable {
  // Pushed.

  /// Bytes without a structure that is known here; pushed as they are.
  case raw
  /// Intel HEX text; its data are pushed, without the text around them.
  case intelHEX = "intel-hex"
  /// An image with MCUboot's header; pushed as it is.
  case mcuboot

  // Recognised and refused, with advice.

  /// An executable of a linker.
  case elf
  /// A ZIP archive.
  case zip
  /// A ZIP archive with a `manifest.json` as Nordic's tools write it.
  case dfuPackage = "dfu-package"
  /// USB Flashing Format: 512-byte blocks for a mass-storage bootloader.
  case uf2
  /// Motorola S-record text.
  case sRecord = "s-record"
  /// Text with terminal colours: a listing that was made for the eye.
  case colouredText = "coloured-text"
  /// A SUIT envelope (CBOR).
  case suit
  /// A file that ends with the suffix of the USB DFU specification.
  case dfuSuffix = "dfu-suffix"
  /// A gzip stream.
  case gzip
  /// An xz stream.
  case xz
  /// A zstd frame.
  case zstd
  /// A bzip2 stream.
  case bzip2

  /// Whether files of this kind are pushed.
  public var isPushable: Bool {
    switch self {
    case .raw, .intelHEX, .mcuboot: true
    default: false
    }
  }
}

/// Addresses from the first of them to before the end, as in Intel HEX.
public struct AddressRange: Hashable, Sendable, CustomStringConvertible {
  /// The first address.
  public let start: UInt64
  /// The first address that is not in it.
  public let end: UInt64

  /// A range of at least one address; nil for anything else.
  public init?(start: UInt64, end: UInt64) {
    guard start < end else { return nil }
    self.start = start
    self.end = end
  }

  /// Number of addresses.
  public var count: UInt64 { end - start }

  /// As it is written for people, with the last address in it: `0x26000-0x4BFFF`.
  public var description: String {
    "0x\(String(start, radix: 16, uppercase: true))-0x\(String(end - 1, radix: 16, uppercase: true))"
  }

  /// Reads `START-END`, both in it, hexadecimal with `0x` or decimal.
  ///
  /// - Throws: `invalidArgument`, saying what is wrong with it.
  public init(parsing text: String) throws(TransferError) {
    let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let start = Self.address(parts[0]), let last = Self.address(parts[1]) else {
      throw TransferError(
        .invalidArgument, "\(text.printable) is no address range", advice: "write it as 0x26000-0x4BFFF")
    }
    guard start <= last, last < .max, let range = Self(start: start, end: last + 1) else {
      throw TransferError(
        .invalidArgument, "the address range \(text.printable) ends before it starts",
        advice: "write the lower address first")
    }
    self = range
  }

  private static func address(_ text: Substring) -> UInt64? {
    let hexadecimal = text.hasPrefix("0x") || text.hasPrefix("0X")
    let digits = hexadecimal ? text.dropFirst(2) : text
    guard let first = digits.first, first != "+", first != "-" else { return nil }
    return UInt64(digits, radix: hexadecimal ? 16 : 10)
  }
}
