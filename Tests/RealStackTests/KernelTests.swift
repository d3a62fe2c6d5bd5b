import Foundation
import RealStack
import Testing

@Suite("Kernel") struct KernelTests {
  @Test("modules are loaded after what they need, once, and never what the kernel has")
  func moduleOrder() throws {
    let needs = ["a": "b-1,c", "b_1": "d", "c": "d,inside", "d": ""]
    var order = ModuleOrder(builtin: ModuleOrder.builtin(listedIn: "kernel/x/inside.ko\nkernel/y/other.ko\n"))
    for module in ["inside", "d", "a", "b-1"] {
      try order.add(module) { name in
        Data("\0license=GPL\0depends=\(try #require(needs[name]))\0name=\(name)\0".utf8)
      }
    }
    #expect(order.names == ["d", "b_1", "c", "a"])
  }

  @Test("a module without the word needs nothing", arguments: ["", "\0depends=\0", "license=GPL\0"])
  func noDependencies(_ object: String) {
    #expect(ModuleOrder.dependencies(of: Data(object.utf8)).isEmpty)
  }

  @Test("files of modules have names", arguments: ["hci_vhci.ko", "hci-vhci.ko.xz", "hci-vhci.ko.zst"])
  func moduleName(_ file: String) {
    #expect(ModuleOrder.name(fileName: file) == "hci_vhci")
  }

  @Test(
    "the kernel is the dependency of its metapackage, if it is new enough",
    arguments: [
      (
        ["linux-image-6.12-amd64", "  Depends: linux-image-6.12.117+deb12-amd64"],
        "linux-image-6.12.117+deb12-amd64"
      ),
      (["  Depends: linux-image-7.0.1-amd64"], "linux-image-7.0.1-amd64"),
      (["  Depends: linux-image-6.1.0-47-amd64"], nil),
      (["  Depends: linux-image-unsigned"], nil),
      (["  Recommends: linux-image-6.12.1-amd64"], nil),
      ([], nil),
    ] as [([String], String?)])
  func packageName(_ lines: [String], _ name: String?) {
    #expect(KernelPackage.dependency(in: lines) == name)
  }

  @Test("a kernel is found where its packing begins")
  func packedKernel() throws {
    let zstd = Data([0x28, 0xB5, 0x2F, 0xFD, 1, 2])
    let (packing, found) = try #require(KernelImage.packed(in: Data("MZ code".utf8) + zstd))
    #expect(packing == .zstd)
    #expect(found == zstd)
    #expect(KernelImage.packed(in: Data("MZ code".utf8)) == nil)
  }

  @Test("an ELF file without its end is not whole", arguments: [64, 127, 128, 255])
  func truncatedKernel(_ count: Int) {
    var elf = Data([0x7F, 0x45, 0x4C, 0x46, 2, 1]) + Data(count: 250)
    elf[40] = 128  // where the sections' table begins
    elf[58] = 64  // octets of an entry
    elf[60] = 2  // entries
    #expect(KernelImage.isWhole(elf))
    #expect(!KernelImage.isWhole(elf.prefix(count)))
  }

  @Test("archives have headers of 110 octets and are padded to four")
  func archive() throws {
    var archive = CPIOArchive()
    archive.addFolder("bin")
    archive.addFile("bin/sh", Data("abcde".utf8), executable: true)
    let bytes = archive.finished()
    #expect(bytes.count % 4 == 0)
    let text = String(decoding: bytes, as: UTF8.self)
    // magic, inode, mode, owner, group, links, time, octets
    #expect(text.hasPrefix("070701" + "00000001" + "000041ed" + "0000000000000000" + "00000001"))
    let file = try #require(text.range(of: "07070100000002"))
    let entry = text[file.lowerBound...]
    #expect(entry.dropFirst(14).hasPrefix("000081ed"))
    #expect(entry.dropFirst(54).hasPrefix("00000005"))
    #expect(entry.dropFirst(110).hasPrefix("bin/sh\0\0\0\0abcde\0\0\0070701"))
    #expect(text.contains("TRAILER!!!\0"))
  }
}
