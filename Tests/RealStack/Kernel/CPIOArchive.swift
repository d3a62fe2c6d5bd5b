package import Foundation

/// An archive in the format "newc" of cpio(5), which the kernel unpacks into its first file system.
///
/// Several archives after one another are one: each is padded to a multiple of four bytes.
package struct CPIOArchive {
  package private(set) var bytes = Data()
  private var inode: UInt32 = 0

  package init() {}

  /// Names have no leading slash; folders come before what is in them.
  package mutating func addFolder(_ name: String) { add(name, mode: 0o040755, Data()) }

  package mutating func addFile(_ name: String, _ contents: Data, executable: Bool = false) {
    add(name, mode: executable ? 0o100755 : 0o100644, contents)
  }

  /// The archive with its end.
  package func finished() -> Data {
    var whole = self
    whole.add("TRAILER!!!", mode: 0, Data())
    return whole.bytes
  }

  private mutating func add(_ name: String, mode: UInt32, _ contents: Data) {
    inode += 1
    let fields: [UInt32] = [
      inode, mode, 0, 0, 1, 0, UInt32(contents.count), 0, 0, 0, 0, UInt32(name.utf8.count + 1), 0,
    ]
    bytes += Data("070701".utf8)
    for field in fields {
      let digits = String(field, radix: 16)
      bytes += Data((String(repeating: "0", count: 8 - digits.count) + digits).utf8)
    }
    bytes += Data(name.utf8) + [0]
    pad()
    bytes += contents
    pad()
  }

  private mutating func pad() {
    bytes += Data(repeating: 0, count: (4 - bytes.count % 4) % 4)
  }
}
