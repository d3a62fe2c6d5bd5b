internal import Foundation

/// Looks into a file: what it is, what is known about it, and the bytes that would be sent.
struct FileExamination {
  var inspection: FileInspection
  /// The bytes that would be sent; nil if there is an obstacle.
  var image: (any ByteSource)?
  private let source: FileSource
  private let name: String

  init(_ source: FileSource, _ options: ImageFile.Options) throws(TransferError) {
    self.source = source
    name = source.path.printable
    let recognition = try FormatRecognition(source)
    inspection = FileInspection(
      path: source.path, format: options.treatsAsRaw ? .raw : recognition.format, fileSize: source.size,
      fileModified: source.modified)
    do throws(TransferError) {
      try examine(recognition, options)
      if options.range != nil, inspection.format != .intelHEX {
        throw TransferError(
          .invalidArgument,
          "a range of addresses is for Intel HEX files, \(name) is \(inspection.format.title)",
          advice: "leave it out")
      }
      if let size = image?.size, size > TransferManifest.Object.largestSize {
        throw TransferError(
          .unusableFile,
          "\(name) holds \(size) bytes to be sent, more than the \(TransferManifest.Object.largestSize) of the largest object",
          advice: "send it in parts")
      }
      inspection.imageSize = image?.size
    } catch {
      // That the file cannot be read any more is no property of its contents.
      if error.code == .unusableFile, inspection.format.isPushable { throw error }
      inspection.obstacle = error
      image = nil
    }
    try source.checkUnchanged()
  }

  private mutating func examine(
    _ recognition: FormatRecognition, _ options: ImageFile.Options
  ) throws(TransferError) {
    switch inspection.format {
    case .raw:
      addVectors(recognition.head)
      image = source
    case .intelHEX: try examineHEX(options.range)
    case .mcuboot:
      try examineMCUboot(source)
      image = source
    case .zip, .dfuPackage: try examineZIP()
    case .suit: try examineSUIT()
    case .elf: addELF(recognition.head)
    case .uf2: addUF2(recognition.head)
    case .dfuSuffix: addDFUSuffix(recognition.tail)
    case .sRecord, .colouredText, .gzip, .xz, .zstd, .bzip2: break
    }
    if !inspection.format.isPushable {
      throw TransferError(
        .unusableFile, "\(name) is \(inspection.format.title)", advice: inspection.format.advice,
        remedy: inspection.format.canBeTakenAsItIs ? .takeAsItIs : nil)
    }
  }

  private mutating func add(_ key: String, _ value: String?) {
    if let value { inspection.facts.append(.init(key, value)) }
  }
}

// MARK: Formats that are sent

extension FileExamination {
  private mutating func examineHEX(_ range: AddressRange?) throws(TransferError) {
    let start = try source.read(at: 0, count: Int(min(source.size, 2)))
    if [Data([0xFF, 0xFE]), Data([0xFE, 0xFF])].contains(start) {
      throw TransferError(
        .malformedFile, "\(name) is Intel HEX as UTF-16 text", advice: "save it as ASCII or UTF-8")
    }
    let hex = try IntelHEXParser.parse(source, name: name)
    inspection.sections = hex.sections
    add("data-bytes", "\(hex.chunks.reduce(0) { $0 + $1.count })")
    switch hex.start {
    case .linear(let address): add("start-address", IntelHEXParser.hex(UInt64(address)))
    case .segment(let cs, let ip):
      add("start-address", "CS:IP \(IntelHEXParser.hex(UInt64(cs))):\(IntelHEXParser.hex(UInt64(ip)))")
    case nil: break
    }
    let (addresses, bytes) = try hex.image(range: range, name: name)
    add("addresses", addresses.description)
    let head = try bytes.read(at: 0, count: Int(min(bytes.size, 64)))
    if MCUbootImage.matches(head) {
      add("contents", ImageFormat.mcuboot.title)
      try examineMCUboot(bytes)
    } else {
      addVectors(head)
    }
    image = bytes
  }

  private mutating func examineMCUboot(_ bytes: any ByteSource) throws(TransferError) {
    let mcuboot = try MCUbootImage(bytes, name: name)
    add("version", mcuboot.version)
    add("body-bytes", "\(mcuboot.bodySize)")
    if mcuboot.loadAddress != 0 { add("load-address", IntelHEXParser.hex(mcuboot.loadAddress)) }
    if mcuboot.flags.contains(.nonBootable) { add("flag", "not bootable") }
    if !mcuboot.flags.isDisjoint(with: [.aes128, .aes256]) { add("flag", "encrypted") }
    if !mcuboot.flags.isDisjoint(with: [.lzma1, .lzma2]) { add("flag", "compressed") }
    add("hash", mcuboot.hash.map { "\($0.name) \($0.value.hex)" })
    add("signature", mcuboot.signatures.isEmpty ? "none" : mcuboot.signatures.joined(separator: ", "))
    if mcuboot.totalSize < bytes.size {
      add("trailing-bytes", "\(bytes.size - mcuboot.totalSize) after the image at \(mcuboot.totalSize)")
    }
    guard let agrees = try mcuboot.hashAgrees(bytes) else { return }
    add("hash-agrees", agrees ? "yes" : "no")
    if !agrees {
      throw TransferError(
        .malformedFile, "\(name) is an MCUboot image and damaged: its hash is not that of its contents",
        advice: "copy or build it again, or send it as it is", remedy: .takeAsItIs)
    }
  }

  /// The first two words of an image for an Arm Cortex-M: initial stack pointer and reset handler.
  private mutating func addVectors(_ head: Data) {
    guard let stack = head.littleEndian(at: 0, count: 4), let reset = head.littleEndian(at: 4, count: 4),
      (0x1000_0000..<0x4000_0000).contains(stack), stack % 4 == 0, reset % 2 == 1, reset < 0x2000_0000
    else { return }
    add("vectors", "Arm Cortex-M, stack \(IntelHEXParser.hex(stack)), reset \(IntelHEXParser.hex(reset))")
  }
}

// MARK: Formats that are refused

extension FileExamination {
  private mutating func examineZIP() throws(TransferError) {
    let listing = try ZIPListing(source, name: name)
    if listing.isDFUPackage { inspection.format = .dfuPackage }
    add("entries", "\(listing.count)")
    let names = listing.names.prefix(12).map { $0.cut(to: 100) }
    add("names", names.joined(separator: ", ") + (listing.names.count > names.count ? ", ..." : ""))
  }

  private mutating func examineSUIT() throws(TransferError) {
    let count = Int(min(source.size, UInt64(FileSource.longestRead)))
    let envelope = try SUITEnvelope(try source.read(at: 0, count: count), name: name)
    add("digest", "\(envelope.digest.algorithm) \(envelope.digest.value.hex)")
  }

  private mutating func addELF(_ head: Data) {
    guard head.count >= 20 else { return }
    let bigEndian = head[5] == 2
    func word(_ offset: Int) -> UInt64 {
      let value = head.littleEndian(at: offset, count: 2) ?? 0
      return bigEndian ? UInt64(UInt16(value).byteSwapped) : value
    }
    let machines: [UInt64: String] = [
      3: "x86", 40: "Arm", 45: "ARC", 62: "x86-64", 83: "AVR", 94: "Xtensa", 105: "MSP430", 183: "Arm64",
      195: "ARCv2",
      243: "RISC-V",
    ]
    add("machine", machines[word(18)] ?? "number \(word(18))")
    add("class", head[4] == 2 ? "64 bits" : "32 bits")
    let types: [UInt64: String] = [1: "object file", 2: "executable", 3: "shared object", 4: "core dump"]
    add("type", types[word(16)] ?? "number \(word(16))")
  }

  private mutating func addUF2(_ head: Data) {
    add("blocks", head.littleEndian(at: 24, count: 4).map { "\($0)" })
    add("target-address", head.littleEndian(at: 12, count: 4).map { IntelHEXParser.hex($0) })
    if let flags = head.littleEndian(at: 8, count: 4), flags & 0x2000 != 0 {
      add("family", head.littleEndian(at: 28, count: 4).map { IntelHEXParser.hex($0) })
    }
  }

  private mutating func addDFUSuffix(_ tail: Data) {
    guard Data(tail.dropFirst(8).prefix(3)) == Data([0x55, 0x46, 0x44]),
      let product = tail.littleEndian(at: 2, count: 2), let vendor = tail.littleEndian(at: 4, count: 2)
    else { return }
    add(
      "usb-id",
      "\([UInt8(vendor >> 8), UInt8(vendor & 255)].hex):\([UInt8(product >> 8), UInt8(product & 255)].hex)")
  }
}
