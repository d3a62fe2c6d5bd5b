import Foundation
import TestSupport
import Testing

@testable import BulkTransfer

@Suite("Image file")
struct ImageFileTests {
  struct Sample: Sendable, CustomTestStringConvertible {
    var format: ImageFormat
    var contents: Data
    /// A part of the sentence that refuses it; nil if it is sent.
    var refusal: String?
    var advice = ""
    var testDescription: String { format.rawValue }
  }

  static func samples() throws -> [Sample] {
    [
      Sample(format: .raw, contents: pattern(1000)),
      Sample(format: .intelHEX, contents: SampleFiles.hex),
      Sample(format: .mcuboot, contents: try SampleFiles.mcuboot(body: pattern(5000))),
      Sample(format: .elf, contents: SampleFiles.elf, refusal: "is an ELF file", advice: "objcopy -O binary"),
      Sample(
        format: .zip, contents: SampleFiles.zip(["a.bin"]), refusal: "is a ZIP archive",
        advice: "send the archive itself"),
      Sample(
        format: .dfuPackage, contents: SampleFiles.zip(["fw/manifest.json", "fw/a.bin"]),
        refusal: "is a firmware package for Nordic's DFU", advice: "unpack it"),
      Sample(format: .uf2, contents: SampleFiles.uf2, refusal: "is a UF2 file", advice: "uf2conv.py"),
      Sample(
        format: .sRecord, contents: SampleFiles.sRecord, refusal: "is a Motorola S-record file",
        advice: "objcopy -I srec"),
      Sample(
        format: .colouredText, contents: SampleFiles.coloured, refusal: "is text with terminal colours",
        advice: "the file that the listing was made from"),
      Sample(
        format: .suit, contents: SampleFiles.suit, refusal: "is a SUIT envelope",
        advice: "the image that it describes"),
      Sample(
        format: .dfuSuffix, contents: SampleFiles.dfu, refusal: "is a file for USB DFU",
        advice: "dfu-suffix -D"),
      Sample(
        format: .gzip, contents: Data([0x1F, 0x8B, 8, 0]) + pattern(50), refusal: "is compressed with gzip",
        advice: "gunzip"),
      Sample(
        format: .xz, contents: Data([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0]) + pattern(50),
        refusal: "is compressed with xz",
        advice: "unxz"),
      Sample(
        format: .zstd, contents: Data([0x28, 0xB5, 0x2F, 0xFD]) + pattern(50),
        refusal: "is compressed with zstd",
        advice: "unzstd"),
      Sample(
        format: .bzip2, contents: Data("BZh91AY&SY".utf8) + pattern(50), refusal: "is compressed with bzip2",
        advice: "bunzip2"),
    ]
  }

  @Test("a file beyond the largest object is refused by its size, unread")
  func tooLarge() throws {
    let folder = TemporaryFolder()
    let path = try folder.write(Data([1]), "sparse")
    // Where the file system holds no such file, there is none to be refused.
    try #require(unsafe truncate(path, off_t(TransferManifest.Object.largestSize) + 1) == 0 || errno == EFBIG)
    guard try FileSource(path: path).size > 1 else { return }
    for options in [ImageFile.Options(), ImageFile.Options(treatsAsRaw: true)] {
      let error = #expect(throws: TransferError.self) { try ImageFile(path: path, options: options) }
      #expect(error?.code == .unusableFile)
      #expect(error?.message.contains("\(TransferManifest.Object.largestSize)") == true)
    }
  }

  @Test("there is a sample of each format")
  func complete() throws {
    #expect(try Self.samples().map(\.format) == ImageFormat.allCases)
  }

  @Test(
    "a file is recognised by its contents, whatever its name, and sent or refused with advice",
    arguments: try Self.samples(), ["fw", "fw.bin", "fw.hex", "fw.elf", "fw.zip"])
  func recognition(sample: Sample, name: String) throws {
    let folder = TemporaryFolder()
    let path = try folder.write(sample.contents, name)
    let inspection = try ImageFile.inspect(path: path)
    #expect(inspection.format == sample.format)
    #expect(inspection.fileSize == UInt64(sample.contents.count))
    guard let refusal = sample.refusal else {
      let image = try ImageFile(path: path)
      #expect(image.inspection == inspection)
      #expect(inspection.imageSize == image.source.size)
      #expect(try image.source.all() == (sample.format == .intelHEX ? pattern(200) : sample.contents))
      return
    }
    #expect(inspection.imageSize == nil)
    let error = #expect(throws: TransferError.self) { try ImageFile(path: path) }
    #expect(error == inspection.obstacle)
    #expect(error?.code == .unusableFile)
    #expect(error?.message.hasPrefix("\(path) \(refusal)") == true)
    #expect(error?.advice?.contains(sample.advice) == true)
  }

  @Test("raw data are taken as they are when the user says so", arguments: try Self.samples())
  func raw(sample: Sample) throws {
    let folder = TemporaryFolder()
    let image = try ImageFile(path: folder.write(sample.contents, "f"), options: .init(treatsAsRaw: true))
    #expect(image.inspection.format == .raw)
    #expect(try image.source.all() == sample.contents)
  }

  @Test(
    "a HEX file that begins with something else, is damaged at its start or cut to a few characters is no raw data",
    arguments: [
      Data("// build 7\n".utf8) + SampleFiles.hex, Data(":".utf8) + SampleFiles.hex,
      Data("\n\n".utf8) + SampleFiles.hex.dropLast(4),
      Data(":10".utf8), Data([0xFF, 0xFE]) + Data(SampleFiles.hex.flatMap { [$0, 0] }),
    ])
  func damagedHEX(text: Data) throws {
    let folder = TemporaryFolder()
    let inspection = try ImageFile.inspect(path: folder.write(text, "f"))
    #expect(inspection.format == .intelHEX)
    #expect(inspection.obstacle?.code == .malformedFile)
  }

  @Test("other text is raw data", arguments: ["hello\n", ": note\n", "Some text\nS1\n:x\n", ":", "S"])
  func otherText(text: String) throws {
    let folder = TemporaryFolder()
    #expect(try ImageFile.inspect(path: folder.write(Data(text.utf8), "f")).format == .raw)
  }

  @Test("tells what is in a HEX file with several images")
  func hexSections() throws {
    let folder = TemporaryFolder()
    let text = hexText(
      hexRecords(pattern(100), at: 0) + hexRecords(pattern(4), at: 0x1000_1014) + [
        hexRecord(5, 0, [0, 0, 0, 0xC1]), hexEnd,
      ])
    let path = try folder.write(text, "f")
    let inspection = try ImageFile.inspect(path: path)
    #expect(inspection.sections.map(\.description) == ["0x0-0x63", "0x10001014-0x10001017"])
    #expect(inspection.fact("start-address") == "0xC1")
    #expect(inspection.fact("data-bytes") == "104")
    #expect(inspection.obstacle?.code == .invalidArgument)
    let image = try ImageFile(path: path, options: .init(range: AddressRange(start: 0, end: 0x1000)))
    #expect(try image.source.all() == pattern(100))
    #expect(image.inspection.fact("addresses") == "0x0-0x63")
  }

  @Test("a range for a file without addresses is refused")
  func rangeForRaw() throws {
    let folder = TemporaryFolder()
    let options = ImageFile.Options(range: AddressRange(start: 0, end: 1))
    let error = #expect(throws: TransferError.self) {
      try ImageFile(path: folder.write(pattern(100), "f"), options: options)
    }
    #expect(error?.code == .invalidArgument)
  }

  @Test("tells version and hash of an MCUboot image, in binary and in HEX")
  func mcubootFacts() throws {
    let folder = TemporaryFolder()
    let image = try SampleFiles.mcuboot(
      body: pattern(5000), protected: SampleFiles.little(0x50, 2) + Data([4, 0, 1, 0, 0, 0]))
    let hash = try SHA256Hasher.digest(of: image.prefix(0x200 + 5000 + 12)).hex
    for contents in [
      image, hexText(hexRecords(image, at: 0xC000) + [hexEnd]), image + Data(repeating: 0xFF, count: 100),
    ] {
      let inspection = try ImageFile.inspect(path: folder.write(contents, "f"))
      #expect(inspection.obstacle == nil)
      #expect(inspection.fact("version") == "1.2.3+4")
      #expect(inspection.fact("hash") == "SHA-256 \(hash)")
      #expect(inspection.fact("hash-agrees") == "yes")
      #expect(inspection.fact("signature") == "ECDSA")
      #expect((inspection.fact("trailing-bytes") != nil) == (contents.count == image.count + 100))
    }
  }

  @Test("a damaged MCUboot image is refused before the bootloader does it; an encrypted one cannot be judged")
  func mcubootHash() throws {
    let folder = TemporaryFolder()
    let damaged = try ImageFile.inspect(
      path: folder.write(SampleFiles.mcuboot(body: pattern(99), damage: true), "f"))
    #expect(damaged.obstacle?.code == .malformedFile)
    #expect(damaged.fact("hash-agrees") == "no")
    let encrypted = try ImageFile.inspect(
      path: folder.write(SampleFiles.mcuboot(body: pattern(99), flags: 4, damage: true), "f"))
    #expect(encrypted.obstacle == nil)
    #expect(encrypted.fact("flag") == "encrypted")
  }

  @Test("an MCUboot image that is cut anywhere is refused with what was expected")
  func mcubootTruncated() throws {
    let image = try SampleFiles.mcuboot(body: pattern(300), header: 32, protected: Data([0x50, 0, 1, 0, 9]))
    for count in 4..<image.count {
      let error = #expect(throws: TransferError.self) {
        try MCUbootImage(MemorySource(image.prefix(count)), name: "f")
      }
      #expect(error?.code == .malformedFile)
      #expect(error?.message.contains("cut short") == true, "\(count)")
    }
    #expect(try MCUbootImage(MemorySource(image), name: "f").totalSize == UInt64(image.count))
  }

  @Test(
    "absurd sizes in the header are errors, at once",
    arguments: [
      (12, [0, 0, 0x60, 6]), (12, [0xFF, 0xFF, 0xFF, 0xFF]), (8, [0, 0]), (8, [0xFF, 0xFF]), (8, [31, 0]),
      (10, [0xFF, 0xFF]),
      (12, [0, 0, 0, 0]),
    ] as [(Int, [UInt8])])
  func mcubootSizes(offset: Int, bytes: [UInt8]) throws {
    var image = try SampleFiles.mcuboot(body: pattern(5000))
    image.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    let error = #expect(throws: TransferError.self) { try MCUbootImage(MemorySource(image), name: "f") }
    #expect(error?.code == .malformedFile)
  }

  @Test("any file that is cut or damaged is an answer and nothing worse", arguments: try Self.samples())
  func hostile(sample: Sample) throws {
    let folder = TemporaryFolder()
    var random = SeededGenerator(7)
    for count in Set(
      (0..<40).map { _ in Int.random(in: 1...sample.contents.count, using: &random) } + Array(1...40))
    {
      _ = try ImageFile.inspect(path: folder.write(sample.contents.prefix(count), "f"))
    }
    for _ in 0..<100 {
      var contents = sample.contents
      for _ in 0..<3 {
        let place = Int.random(in: 0..<min(contents.count, 600), using: &random)
        contents[place] = UInt8.random(in: 0...255, using: &random)
      }
      let inspection = try ImageFile.inspect(path: folder.write(contents, "f"))
      #expect(inspection.facts.allSatisfy { !$0.value.unicodeScalars.contains { $0.isUnprintable } })
    }
  }

  @Test("a ZIP with hostile names is listed in printable characters; what a Mac adds is no manifest")
  func zipNames() throws {
    let folder = TemporaryFolder()
    let names = ["../../etc/passwd", "a\u{1B}[31m", "__MACOSX/manifest.json", "__MACOSX/._manifest.json"]
    let inspection = try ImageFile.inspect(path: folder.write(SampleFiles.zip(names), "f"))
    #expect(inspection.format == .zip)
    #expect(inspection.fact("names")?.contains("a\\u{1B}[31m") == true)
    let cut = try ImageFile.inspect(path: folder.write(SampleFiles.zip(names).dropLast(30), "f"))
    #expect(cut.obstacle?.code == .malformedFile)
  }

  @Test("a SUIT envelope tells its digest; a cut one is refused")
  func suit() throws {
    let folder = TemporaryFolder()
    let tagged = try ImageFile.inspect(path: folder.write(SampleFiles.suit, "f"))
    #expect(tagged.fact("digest") == "SHA-256 \([UInt8](pattern(32)).hex)")
    let untagged = try ImageFile.inspect(path: folder.write(SampleFiles.suit.dropFirst(2), "f"))
    #expect(untagged.format == .suit && untagged.fact("digest") == tagged.fact("digest"))
    for count in 5..<SampleFiles.suit.count {
      let cut = try ImageFile.inspect(path: folder.write(SampleFiles.suit.prefix(count), "f"))
      #expect(cut.obstacle?.code == .malformedFile, "\(count)")
    }
  }

  @Test("tells an image for a Cortex-M by its vectors")
  func vectors() throws {
    let folder = TemporaryFolder()
    let contents = SampleFiles.little(0x2004_0000, 4) + SampleFiles.little(0x26379, 4) + pattern(100)
    let inspection = try ImageFile.inspect(path: folder.write(contents, "f"))
    #expect(inspection.fact("vectors") == "Arm Cortex-M, stack 0x20040000, reset 0x26379")
  }
}

@Suite("Image files and manifests")
struct ImageManifestTests {
  @Test("a described file is found equal again, in each format")
  func roundTrip() throws {
    let folder = TemporaryFolder()
    for sample in try ImageFileTests.samples() where sample.refusal == nil {
      let image = try ImageFile(path: folder.write(sample.contents, "fw.bin"))
      let object = try image.describe(path: "fw.bin", segmentSize: 4096)
      #expect(object.name == "fw.bin" && object.format == sample.format)
      let manifest = try TransferManifest(decoding: TransferManifest(objects: [object]).encoded())
      let again = try manifest.objects[0].openImage(in: folder.path)
      #expect(try object.firstDifference(in: again.source) == nil)
    }
  }

  @Test("a byte that changed is found by its segment, though size and time of the file are as before")
  func silentChange() throws {
    let folder = TemporaryFolder()
    var bytes = pattern(10_000)
    let path = try folder.write(bytes, "fw.bin")
    let date = try #require(FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date)
    let object = try ImageFile(path: path).describe(segmentSize: 4096)
    bytes[5000] ^= 1
    try folder.write(bytes, "fw.bin")
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
    let difference = try object.firstDifference(in: object.openImage().source)
    #expect(difference == .segment(index: 1, bytes: 4096..<8192))
    #expect(try ImageFile(path: path).describe().sha256 != object.sha256)
  }

  @Test("a range is recorded and used again; a file of another format is refused")
  func rangeAndFormat() throws {
    let folder = TemporaryFolder()
    let text = hexText(hexRecords(pattern(100), at: 0) + hexRecords(pattern(300), at: 0x10000) + [hexEnd])
    let path = try folder.write(text, "fw.hex")
    let range = AddressRange(start: 0x10000, end: 0x20000)
    let object = try ImageFile(path: path, options: .init(range: range)).describe()
    #expect(object.size == 300 && object.range == range)
    #expect(try object.firstDifference(in: object.openImage().source) == nil)
    try folder.write(SampleFiles.mcuboot(body: pattern(10)), "fw.hex")
    #expect(throws: TransferError.self) { try object.openImage() }
  }
}
