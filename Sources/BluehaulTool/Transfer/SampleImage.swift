package import BulkTransfer
package import Foundation

/// Makes a firmware image for demonstrations: an MCUboot image whose contents have the mixture of a real one, the same on every machine.
///
/// Vector table, Thumb-2 functions with literal pools, log strings, lookup tables and a padded end give what links and compressors meet in
/// practice: it shrinks to about two thirds. The header and the SHA-256 trailer are valid (MCUboot's design, "Image format").
package struct SampleImage {
  /// Where the application is linked to, as on a part with a bootloader in front.
  static let base: UInt32 = 0x0000_C000
  static let headerSize = 0x200
  /// As it is called in `samples/`.
  package static let fileName = "sensor-hub-1.4.2.bin"
  package static let defaultSize = 384 << 10
  package static let defaultSeed: UInt64 = 0x5EED

  private var random: SampleRandom
  private var body: [UInt8] = []
  private var functions: [Int] = []

  /// The whole image, `size` bytes with header and trailer.
  package static func data(
    size: Int = defaultSize, seed: UInt64 = defaultSeed
  ) throws(TransferError) -> Data {
    let trailer = 4 + 4 + SHA256Digest.byteCount
    var image = SampleImage(random: SampleRandom(state: seed))
    image.write(bytes: max(4096, size) - headerSize - trailer)
    var data = Data(header(imageSize: image.body.count))
    data += image.body
    let digest = try SHA256Hasher.digest(of: data)
    var end: [UInt8] = []
    end.append(littleEndian: UInt16(0x6907))  // IMAGE_TLV_INFO_MAGIC
    end.append(littleEndian: UInt16(trailer))
    end.append(littleEndian: UInt16(0x10))  // IMAGE_TLV_SHA256
    end.append(littleEndian: UInt16(SHA256Digest.byteCount))
    return data + end + digest.data
  }

  private static func header(imageSize: Int) -> [UInt8] {
    var header: [UInt8] = []
    header.append(littleEndian: UInt32(0x96F3_B83D))  // IMAGE_MAGIC
    header.append(littleEndian: UInt32(0))  // load address: runs where it is
    header.append(littleEndian: UInt16(headerSize))
    header.append(littleEndian: UInt16(0))  // no protected trailer
    header.append(littleEndian: UInt32(truncatingIfNeeded: imageSize))
    header.append(littleEndian: UInt32(0))  // flags
    header += [1, 4]  // version 1.4.2+1107
    header.append(littleEndian: UInt16(2))
    header.append(littleEndian: UInt32(1107))
    header += repeatElement(0, count: headerSize - header.count)
    return header
  }

  private init(random: SampleRandom) { self.random = random }

  private mutating func write(bytes size: Int) {
    writeVectors()
    while body.count < size * 7 / 10 { writeFunction() }
    while body.count < size * 8 / 10 { writeMessage() }
    while body.count < size * 96 / 100 { writeTable() }
    let end = min(size, (body.count + 4095) / 4096 * 4096)
    body += repeatElement(0xFF, count: max(0, end - body.count))
    while body.count < size { writeTable() }
    body.removeLast(body.count - size)
  }

  /// Stack pointer, reset and exceptions, then a table of interrupts that mostly go to one handler.
  private mutating func writeVectors() {
    body.append(littleEndian: UInt32(0x2000_8000))
    for number in 1..<64 {
      let handler = number < 16 || random.below(4) == 0 ? 0x400 + random.below(0x4000) * 2 : 0x3F0
      body.append(littleEndian: Self.base + UInt32(Self.headerSize + handler) | 1)
    }
  }

  /// A function in Thumb-2: push, a body of common instructions, pop, and its literals.
  private mutating func writeFunction() {
    functions.append(body.count)
    let saved = UInt16(truncatingIfNeeded: random.below(16)) << 4
    body.append(littleEndian: 0xB500 | saved)  // push {r4-r7, lr}
    var literals = 0
    for _ in 0..<(6 + random.below(60)) {
      let (d, m, immediate) = (random.short(8), random.short(8), random.short(256))
      switch random.below(16) {
      case 0, 1: body.append(littleEndian: 0x2000 | d << 8 | immediate)  // movs rd, #imm
      case 2, 3: body.append(littleEndian: 0x6800 | random.short(32) << 6 | m << 3 | d)  // ldr rd, [rm, #]
      case 4: body.append(littleEndian: 0x6000 | random.short(32) << 6 | m << 3 | d)  // str
      case 5: body.append(littleEndian: 0x4600 | random.short(16) << 3 | d)  // mov rd, rm
      case 6: body.append(littleEndian: 0x3000 | d << 8 | random.short(16))  // adds
      case 7: body.append(littleEndian: 0x2800 | d << 8 | random.short(32))  // cmp
      case 8: body.append(littleEndian: 0xD000 | random.short(14) << 8 | random.short(48))  // b<cond>
      case 9, 10:  // ldr rd, [pc, #]
        literals += 1
        body.append(littleEndian: 0x4800 | d << 8 | UInt16(truncatingIfNeeded: literals + 8))
      case 11, 12, 13:  // bl
        let goal = functions[random.below(functions.count)]
        let distance = (goal - body.count - 4) >> 1
        body.append(littleEndian: 0xF000 | UInt16(truncatingIfNeeded: distance >> 11) & 0x7FF)
        body.append(littleEndian: 0xF800 | UInt16(truncatingIfNeeded: distance) & 0x7FF)
      case 14: body.append(littleEndian: 0x1800 | random.short(8) << 6 | m << 3 | d)  // adds rd, rm, rn
      default: body.append(littleEndian: 0x0000 | random.short(32) << 6 | m << 3 | d)  // lsls
      }
    }
    body.append(littleEndian: 0xBD00 | saved)  // pop {r4-r7, pc}
    if body.count % 4 != 0 { body.append(littleEndian: UInt16(0xBF00)) }  // nop
    for _ in 0..<literals {
      let isPeripheral = random.below(3) == 0
      let address =
        isPeripheral ? 0x4000_0000 + random.below(64) << 12 : 0x2000_0000 + random.below(0x2000) * 4
      body.append(littleEndian: UInt32(truncatingIfNeeded: address))
    }
  }

  private mutating func writeMessage() {
    let parts = [
      "adc", "flash", "i2c", "bus", "sensor", "timer", "queue", "power", "radio", "clock", "pump", "valve",
    ]
    let verbs = ["failed", "ready", "timed out", "restarted", "calibrated", "lost", "saturated", "idle"]
    let message =
      "\(parts[random.below(parts.count)])\(random.below(8)): \(verbs[random.below(verbs.count)])"
      + ["", " (%d)", ", state 0x%02x", " after %u ms"][random.below(4)]
    body += message.utf8
    body += repeatElement(0, count: 4 - body.count % 4)
  }

  /// Calibration values: slowly rising, with noise in the low byte.
  private mutating func writeTable() {
    var value = random.below(0x4000)
    for _ in 0..<128 {
      value += random.below(96)
      body.append(littleEndian: UInt16(truncatingIfNeeded: value))
    }
  }
}

/// SplitMix64: the same numbers on every machine.
private struct SampleRandom {
  var state: UInt64

  mutating func below(_ limit: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
    word ^= word >> 31
    return Int(word >> 33) % limit
  }

  mutating func short(_ limit: Int) -> UInt16 { UInt16(truncatingIfNeeded: below(limit)) }
}

extension [UInt8] {
  fileprivate mutating func append(littleEndian value: UInt16) {
    append(UInt8(truncatingIfNeeded: value))
    append(UInt8(truncatingIfNeeded: value >> 8))
  }

  fileprivate mutating func append(littleEndian value: UInt32) {
    append(littleEndian: UInt16(truncatingIfNeeded: value))
    append(littleEndian: UInt16(truncatingIfNeeded: value >> 16))
  }
}
