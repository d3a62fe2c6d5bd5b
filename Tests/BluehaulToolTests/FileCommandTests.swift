import BulkTransfer
import Foundation
import TestSupport
import Testing

@testable import BluehaulTool

@Suite struct FileCommandTests {
  private func withFolder(_ body: (String) async throws -> Void) async throws {
    let folder = TemporaryFolder()
    try await body(folder.path)
    withExtendedLifetime(folder) {}
  }

  private func write(_ bytes: some Sequence<UInt8>, _ path: String) throws {
    try Data(bytes).write(to: URL(filePath: path))
  }

  /// One record of Intel HEX.
  private func record(_ type: UInt8, _ address: UInt16, _ data: [UInt8]) -> String {
    let bytes = [UInt8(data.count), UInt8(address >> 8), UInt8(address & 0xFF), type] + data
    let sum = 0 &- bytes.reduce(0, &+)
    return ":"
      + (bytes + [sum]).map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined() + "\n"
  }

  @Test(
    "contents decide what a file is, whatever it is called",
    arguments: ["fw.bin", "fw.hex", "fw"],
    [
      ([0x7F, 0x45, 0x4C, 0x46, 1, 1, 1, 0] + [UInt8](repeating: 0, count: 56), "ELF", "objcopy"),
      ([0x50, 0x4B, 5, 6] + [UInt8](repeating: 0, count: 18), "ZIP", "--raw"),
      (
        [0x55, 0x46, 0x32, 0x0A, 0x57, 0x51, 0x5D, 0x9E] + [UInt8](repeating: 0, count: 500)
          + [0x30, 0x6F, 0xB1, 0x0A], "UF2", ".bin"
      ),
    ] as [([UInt8], String, String)])
  func contentsDecide(name: String, file: ([UInt8], String, String)) async throws {
    try await withFolder { folder in
      try write(file.0, "\(folder)/\(name)")
      let run = await ToolRun("inspect", "\(folder)/\(name)")
      #expect(run.code == .badFile)
      #expect(run.errors.contains(file.1) && run.errors.contains(file.2), "\(run.errors)")
      #expect(run.errors.split(separator: "\n").count <= 2)
      let raw = await ToolRun("inspect", "\(folder)/\(name)", "--raw")
      #expect(raw.code == .success)
      #expect(raw.output.contains("sends: \(file.0.count) bytes"))
      let json = await ToolRun("inspect", "\(folder)/\(name)", "--json")
      try Documentation.check(json.lines)
      #expect(json.output.contains("\"sendable\":false"))
    }
  }

  @Test("a manifest does not take the place of anything but a manifest")
  func manifestOverImage() async throws {
    try await withFolder { folder in
      let (image, manifest) = ("\(folder)/fw.bin", "\(folder)/release.json")
      let bytes = Data((0..<5000).map { UInt8(truncatingIfNeeded: $0) })
      try write(bytes, image)
      let run = await ToolRun("manifest", "create", image, "--output", image)
      #expect(run.code == .usage)
      #expect(run.errors.contains("is there already and is no manifest"))
      #expect(try Data(contentsOf: URL(filePath: image)) == bytes)
      for _ in 1...2 {
        #expect(await ToolRun("manifest", "create", image, "--output", manifest).code == .success)
      }
      #expect(await ToolRun("manifest", "verify", manifest).code == .success)
    }
  }

  @Test("a manifest follows a link, also one to what is not there, and never describes itself")
  func manifestOverLink() async throws {
    try await withFolder { folder in
      let (image, link) = ("\(folder)/fw.bin", "\(folder)/link.json")
      try write([1, 2, 3], image)
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "release.json")
      for _ in 1...2 {
        #expect(await ToolRun("manifest", "create", image, "--output", link).code == .success)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "release.json")
      }
      let text = try Data(contentsOf: URL(filePath: "\(folder)/release.json"))
      #expect(await ToolRun("manifest", "verify", "\(folder)/release.json").code == .success)
      let run = await ToolRun("manifest", "create", "\(folder)/release.json", "--output", link)
      #expect(run.code == .usage)
      #expect(try Data(contentsOf: URL(filePath: "\(folder)/release.json")) == text)
    }
  }

  @Test("what is read for long is told of before, can be interrupted, and is not mixed with a manifest")
  func longReading() async throws {
    try await withFolder { folder in
      let file = "\(folder)/large.bin"
      try write([1], file)
      try #require(unsafe truncate(file, 1 << 30) == 0)
      let interrupts = Interrupts(exit: {})
      let output = MemorySink { text in
        if text.contains("\"reading\""), !interrupts.happened { interrupts.raise() }
      }
      let run = await ToolRun(["inspect", file, "--json"], output: output, interrupts: interrupts)
      #expect(run.code == .interrupted, "\(run.errors)")
      try Documentation.check(run.lines)
      let manifest = await ToolRun("manifest", "create", file, "--segment", "1MiB")
      #expect(try TransferManifest(decoding: Data(manifest.output.utf8)).totalSize == 1 << 30)
    }
  }

  @Test("two files that would be one at the receiver are refused, and nothing is begun")
  func namesTwice() async throws {
    try await withFolder { folder in
      let (first, second) = ("\(folder)/f.bin", "\(folder)/s/f.bin")
      try FileManager.default.createDirectory(atPath: "\(folder)/s", withIntermediateDirectories: true)
      try write([1, 2, 3], first)
      try write([4, 5, 6], second)
      for command in [
        ["push", first, second, "--to", "bench-1", "--radio", "virtual:\(folder)/air"],
        ["manifest", "create", first, second],
      ] {
        let run = await ToolRun(command, variables: ["XDG_STATE_HOME": "\(folder)/state"])
        #expect(run.code == .usage)
        #expect(run.output == "")
        #expect(run.errors.contains(first) && run.errors.contains(second))
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["f.bin", "s"])
    }
  }

  @Test func whatIsNoFileIsSaidSo() async throws {
    try await withFolder { folder in
      try write([], "\(folder)/empty")
      try #require(unsafe mkfifo("\(folder)/fifo", 0o600) == 0)
      for (path, words) in [
        (folder, "is a folder"), ("/dev/zero", "is a character device"), ("\(folder)/fifo", "is a FIFO"),
        ("\(folder)/empty", "is empty"), ("\(folder)/missing", "does not exist"),
      ] {
        let run = await ToolRun("inspect", path)
        #expect(run.code == .badFile)
        #expect(run.output == "")
        #expect(run.errors.contains(words))
      }
    }
  }

  @Test func aHexFileWithAHoleOffersItsSections() async throws {
    try await withFolder { folder in
      let path = "\(folder)/fw.hex"
      let data = [UInt8](0..<32)
      let text =
        record(0, 0x1000, data) + record(2, 0, [0x10, 0x00]) + record(0, 0, data)
        + record(4, 0, [0x10, 0x00]) + record(0, 0x1000, [1, 2, 3, 4]) + record(1, 0, [])
      try write(text.utf8, path)
      let whole = await ToolRun("inspect", path)
      #expect(whole.code == .badFile)
      #expect(whole.output.contains("0x1000-0x101F") && whole.output.contains("0x10001000-0x10001003"))
      #expect(whole.errors.contains("--range"))
      let part = await ToolRun("inspect", path, "--range", "0x10000+32", "--json")
      #expect(part.code == .success)
      try Documentation.check(part.lines)
      #expect(part.output.contains("\"size\":32"))
      #expect(part.output.contains(try SHA256Hasher.digest(of: Data(data)).hex))
    }
  }

  @Test func aFaultyHexLineIsNamedByItsNumber() async throws {
    try await withFolder { folder in
      let text = record(0, 0, [1, 2, 3, 4]) + ":0400040001020304FF\n" + record(1, 0, [])
      try write(text.utf8, "\(folder)/fw.hex")
      let run = await ToolRun("inspect", "\(folder)/fw.hex")
      #expect(run.code == .badFile)
      #expect(run.errors.contains("line 2"))
    }
  }

  @Test func manifestsAreMadeShownAndVerified() async throws {
    try await withFolder { folder in
      // Without its header, which would make it an image with a hash of its own.
      let image = Data(try SampleImage.data(size: 50_000).dropFirst(512))
      try image.write(to: URL(filePath: "\(folder)/fw.bin"))
      let manifest = "\(folder)/m.json"
      let create = await ToolRun(
        "manifest", "create", "\(folder)/fw.bin", "--output", manifest, "--to", "bench-1", "--segment",
        "4KiB", "--json")
      #expect(create.code == .success, "\(create.errors)")
      try Documentation.check(create.lines)
      let show = await ToolRun("manifest", "show", manifest, "--json")
      try Documentation.check(show.lines)
      #expect(show.output.contains("\"path\":\"fw.bin\""), "relative to the manifest")
      #expect(show.output.contains("\"segment_size\":4096") && show.output.contains("\"device\":\"bench-1\""))
      let verify = await ToolRun("manifest", "verify", manifest, "--json")
      #expect(verify.code == .success)
      try Documentation.check(verify.lines)
      var other = image
      other[20_000] ^= 1
      try other.write(to: URL(filePath: "\(folder)/fw.bin"))
      let broken = await ToolRun("manifest", "verify", manifest)
      #expect(broken.code == .badFile)
      #expect(broken.errors.contains("segment 4"))
    }
  }

  @Test func aManifestOnStandardOutputIsTheManifest() async throws {
    try await withFolder { folder in
      try write([1, 2, 3], "\(folder)/fw.bin")
      let run = await ToolRun("manifest", "create", "\(folder)/fw.bin", "--raw")
      let manifest = try TransferManifest(decoding: Data(run.output.utf8))
      #expect(manifest.objects.map(\.path) == ["\(folder)/fw.bin"])
    }
  }

  @Test(arguments: ["", "{", "[]", "{\"format\":\"bluehaul-manifest\",\"version\":9}"])
  func aBrokenManifestIsABadFile(text: String) async throws {
    try await withFolder { folder in
      try write(text.utf8, "\(folder)/m.json")
      for command in [["manifest", "show"], ["manifest", "verify"], ["push", "--to", "x", "--manifest"]] {
        #expect(await ToolRun(command + ["\(folder)/m.json"]).code == .badFile)
      }
    }
  }
}
