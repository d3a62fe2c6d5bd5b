internal import BulkTransfer
internal import Foundation

extension Benchmark {
  /// Octets that travel instead of an image, by the coder of a push: compressed, and as what changed against an older image.
  static let coding = [
    Benchmark(name: "coding") {
      let old = Firmware.image()
      var measurements = [
        Measurement("coding compressed", try share(old, base: nil), "of the image")
      ]
      for (words, new) in [
        ("same", old), ("version", Firmware.withVersion(old)), ("rebuilt", Firmware.rebuilt(old)),
      ] {
        measurements.append(
          Measurement("coding delta \(words)", try share(new, base: old), "of the image"))
      }
      return measurements
    },
    Benchmark(name: "coding noise") {
      var generator = Firmware.Generator(state: 7)
      let noise = Data((0..<(1 << 18)).map { _ in UInt8(truncatingIfNeeded: generator.next() >> 32) })
      return [Measurement("coding noise", try share(noise, base: nil), "of the image")]
    },
  ]

  /// As a sender does it: segments of 64 KiB, or of 256 KiB with a base; a length of three octets and a check of four each.
  private static func share(_ image: Data, base: Data?) throws -> Double {
    let encoder = SegmentEncoder()
    let source = base.map { MemorySource($0) }
    let step = base == nil ? 1 << 16 : 1 << 18
    var octets = 0
    for start in stride(from: 0, to: image.count, by: step) {
      let segment = image.subdata(in: start..<min(start + step, image.count))
      let frame = try encoder.encode(segment, base: source.map { ($0, 0..<$0.size) })
      octets += 7 + (frame?.count ?? segment.count)
    }
    return Double(octets) / Double(image.count)
  }
}

/// Something like a firmware image: instructions that repeat, addresses that move when something before them grows, text. The same on every machine.
enum Firmware {
  /// The generator of PCG's multiplier (Knuth's MMIX), high bits.
  struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ (state >> 29)
    }
  }

  private static let start: UInt32 = 0x0002_6000
  private static let functions = 2000
  private static let grown = 700

  /// 2000 functions that call each other.
  static func image() -> Data { link(extra: 0) }

  /// The same with one function of 24 octets more, as after a small change: everything behind it has moved.
  static func rebuilt(_ old: Data) -> Data { link(extra: 6) }

  /// The same with another version in its header.
  static func withVersion(_ old: Data) -> Data {
    var new = old
    new[20] &+= 1
    return new
  }

  /// Writes the images that deltas are measured with, for other programs.
  static func writeImages(to folder: URL) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let old = image()
    for (name, image) in [
      ("old", old), ("same", old), ("version", withVersion(old)), ("rebuilt", rebuilt(old)),
    ] {
      try image.write(to: folder.appending(path: "\(name).bin"))
    }
  }

  private static func link(extra: Int) -> Data {
    var generator = Generator(state: 1)
    let vocabulary = (0..<600).map { _ in UInt32(truncatingIfNeeded: generator.next() >> 16) }
    let lengths = (0..<functions).map { number in
      10 + Int(generator.next() >> 33) % 40 + (number == grown ? extra : 0)
    }
    var addresses: [UInt32] = []
    var address = start + 32
    for length in lengths {
      addresses.append(address)
      address += UInt32(length * 4)
    }
    var image = Data(repeating: 0, count: 32)
    image[20] = 1
    for (number, length) in lengths.enumerated() {
      var body = Generator(state: UInt64(number) &* 77 &+ 5)
      for place in 0..<length {
        let word =
          place % 8 == 7
          ? addresses[Int(body.next() >> 33) % functions]
          : vocabulary[Int(min(body.next() >> 33, body.next() >> 33)) % vocabulary.count]
        for shift in stride(from: 0, to: 32, by: 8) { image.append(UInt8(truncatingIfNeeded: word >> shift)) }
      }
    }
    return image
  }
}
