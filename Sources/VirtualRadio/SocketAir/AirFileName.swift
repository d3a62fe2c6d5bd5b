internal import Foundation

/// How a peripheral's name becomes the name of its files; see docs/virtual-air.md.
struct AirFileName: Hashable, Sendable {
  /// Without extension.
  let base: String

  // With its extension, a leading dot and "/proc/self/fd/N/" before it, a path must stay below the 108 octets of sun_path.
  private static let longest = 57

  init(peripheral name: String) {
    let escaped = name.utf8.reduce(into: "") { result, octet in
      let scalar = Unicode.Scalar(octet)
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_": result.unicodeScalars.append(scalar)
      default:
        result += (octet < 16 ? "%0" : "%") + String(octet, radix: 16, uppercase: true)
      }
    }
    if escaped.utf8.count <= Self.longest {
      base = escaped
    } else {
      let digits = String(FNV1a.hash(name.utf8), radix: 16)
      base = escaped.prefix(40) + "~" + String(repeating: "0", count: 16 - digits.count) + digits
    }
  }

  /// Takes the name of a file in the directory; nil if it is not a peripheral's socket.
  init?(socket file: String) { self.init(file, extension: Self.socketExtension) }

  /// Takes the name of a file in the directory; nil if it is not a peripheral's lock.
  init?(lock file: String) { self.init(file, extension: Self.lockExtension) }

  private init?(_ file: String, extension: String) {
    guard file.hasSuffix(`extension`), !file.hasPrefix(".") else { return nil }
    base = String(file.dropLast(`extension`.count))
    guard !base.isEmpty, base.utf8.count <= Self.longest else { return nil }
  }

  /// The peripheral's name; nil where the file has only a hash of it.
  var peripheral: String? {
    guard !base.contains("~"), let name = base.removingPercentEncoding else { return nil }
    return Self(peripheral: name) == self ? name : nil
  }

  private static let socketExtension = ".sock"
  private static let lockExtension = ".lock"

  var socket: String { base + Self.socketExtension }
  var lock: String { base + Self.lockExtension }
  /// Where a socket is bound before it is ready.
  var newSocket: String { ".\(base).new" }
}

/// The hash of Fowler, Noll and Vo with 64 bits, variant 1a.
enum FNV1a {
  static func hash(_ bytes: some Sequence<UInt8>, basis: UInt64 = 0xCBF2_9CE4_8422_2325) -> UInt64 {
    bytes.reduce(basis) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
  }
}
