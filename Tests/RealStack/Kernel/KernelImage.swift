package import Foundation

/// The kernel inside of what a package calls vmlinuz.
///
/// QEMU starts an uncompressed kernel directly (PVH), which spares the emulated processor the seconds of decompressing it.
package enum KernelImage {
  /// How the kernel is packed, and by which program it is unpacked.
  package enum Packing: CaseIterable, Sendable {
    case xz
    case zstd

    var magic: Data {
      switch self {
      case .xz: Data([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00])
      case .zstd: Data([0x28, 0xB5, 0x2F, 0xFD])
      }
    }

    /// What comes after the packed kernel is not looked at: where it ends is not known.
    package var program: [String] {
      switch self {
      case .xz: ["xz", "--decompress", "--stdout", "--single-stream"]
      case .zstd: ["zstd", "--decompress", "--stdout", "--quiet"]
      }
    }
  }

  /// Where the packed kernel begins; nil where it is packed otherwise.
  package static func packed(in image: Data) -> (Packing, Data)? {
    for packing in Packing.allCases {
      if let start = image.range(of: packing.magic)?.lowerBound { return (packing, image[start...]) }
    }
    return nil
  }

  /// Whether an ELF file is all there: its table of sections is the last thing in it.
  package static func isWhole(_ elf: Data) -> Bool {
    let header = [UInt8](elf.prefix(64))
    guard header.count == 64, header.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]) else { return false }
    func number(at offset: Int, octets: Int) -> UInt64 {
      header[offset..<offset + octets].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    let start = number(at: 40, octets: 8)
    let length = number(at: 58, octets: 2) * number(at: 60, octets: 2)
    return start > 0 && start < UInt64(elf.count) && length <= UInt64(elf.count) - start
  }
}
