/// What a file turned out to be, for a person to read, and whether it can be sent.
public struct FileInspection: Hashable, Sendable {
  /// One thing that was found out.
  public struct Fact: Hashable, Sendable {
    /// A stable word for programs, such as `version`.
    public var key: String
    /// The value, printable.
    public var value: String

    init(_ key: String, _ value: String) {
      self.key = key
      self.value = value.printable
    }
  }

  /// The file.
  public let path: String
  /// What it is.
  public internal(set) var format: ImageFormat
  /// Size of the file in bytes.
  public let fileSize: UInt64
  /// Time of the file's last change, in nanoseconds since 1970.
  public let fileModified: Int64
  /// What would be sent, in bytes; nil if nothing can be.
  public internal(set) var imageSize: UInt64?
  /// Addresses that hold data, for formats with addresses.
  public internal(set) var sections: [AddressRange] = []
  /// What was found out, in a fixed order.
  public internal(set) var facts: [Fact] = []
  /// Why it cannot be sent as it is, and what to do; nil if it can.
  public internal(set) var obstacle: TransferError?

  init(path: String, format: ImageFormat, fileSize: UInt64, fileModified: Int64) {
    self.path = path
    self.format = format
    self.fileSize = fileSize
    self.fileModified = fileModified
  }

  /// The value of a fact.
  public func fact(_ key: String) -> String? { facts.first { $0.key == key }?.value }
}

extension ImageFormat {
  /// What a sentence calls a file of this kind: "FILE is ...".
  public var title: String {
    switch self {
    case .raw: "raw data"
    case .intelHEX: "an Intel HEX file"
    case .mcuboot: "an MCUboot image"
    case .elf: "an ELF file, in which symbols and headers surround the image"
    case .zip: "a ZIP archive"
    case .dfuPackage: "a firmware package for Nordic's DFU (a ZIP with manifest.json)"
    case .uf2: "a UF2 file, made for bootloaders that look like a USB drive"
    case .sRecord: "a Motorola S-record file"
    case .colouredText: "text with terminal colours, a listing made for the eye"
    case .suit: "a SUIT envelope (signed update manifest)"
    case .dfuSuffix: "a file for USB DFU, which adds a prefix or suffix to the image"
    case .gzip: "compressed with gzip"
    case .xz: "compressed with xz"
    case .zstd: "compressed with zstd"
    case .bzip2: "compressed with bzip2"
    }
  }

  /// Whether a file of this kind, which is not sent by itself, may be meant to be.
  var canBeTakenAsItIs: Bool {
    switch self {
    case .zip, .dfuPackage, .suit, .gzip, .xz, .zstd, .bzip2: true
    case .raw, .intelHEX, .mcuboot, .elf, .uf2, .sRecord, .colouredText, .dfuSuffix: false
    }
  }

  /// What to do with a file of this kind, for those that are not sent.
  var advice: String? {
    switch self {
    case .raw, .intelHEX, .mcuboot: nil
    case .elf: "convert it with objcopy -O binary IN OUT (or -O ihex)"
    case .zip: "unpack it and send the image in it, or send the archive itself"
    case .dfuPackage:
      "devices with Nordic's DFU are not supported yet: unpack it and send the .bin in it, or send the archive itself"
    case .uf2: "use the .bin or .hex of the same build, or convert it with uf2conv.py"
    case .sRecord: "convert it with objcopy -I srec -O ihex IN OUT"
    case .colouredText: "use the file that the listing was made from"
    case .suit: "send the image that it describes, or the envelope itself"
    case .dfuSuffix: "take the image out with dfu-suffix -D FILE (or dfu-prefix -D FILE)"
    case .gzip: "unpack it with gunzip, or send it as it is"
    case .xz: "unpack it with unxz, or send it as it is"
    case .zstd: "unpack it with unzstd, or send it as it is"
    case .bzip2: "unpack it with bunzip2, or send it as it is"
    }
  }
}
