internal import Foundation
internal import Glibc

/// Debian's kernel package, from the sources of apt.
package enum KernelPackage {
  /// Packages that depend on the newest kernel of a line. The kernels of 6.1 up to 6.1.0-57 stop an adapter for good in some uses of L2CAP sockets.
  static let metapackages = ["linux-image-6.12-amd64", "linux-image-amd64"]
  static let oldestVersion = [6, 12]

  /// The name of the package with the kernel; nil where apt knows none that is new enough.
  ///
  /// Not asynchronous, since conditions of tests ask for it; apt-cache looks into files of this machine only.
  package static func name() -> String? {
    for metapackage in metapackages {
      if let name = dependency(in: aptCache("depends --important \(metapackage)")) { return name }
    }
    return nil
  }

  private static func aptCache(_ words: String) -> [String] {
    guard let output = unsafe popen("LC_ALL=C exec apt-cache \(words) 2>/dev/null", "re") else { return [] }
    defer { unsafe pclose(output) }
    var lines: [String] = []
    var buffer = [CChar](repeating: 0, count: 1024)
    while unsafe fgets(&buffer, Int32(buffer.count), output) != nil {
      let line = buffer.prefix { $0 != 0 && $0 != 0x0A }.map { UInt8(bitPattern: $0) }
      lines.append(String(decoding: line, as: UTF8.self))
    }
    return lines
  }

  /// The kernel in what `apt-cache depends` prints.
  package static func dependency(in lines: [String]) -> String? {
    for line in lines {
      let words = line.split(separator: " ")
      guard words.count == 2, words[0] == "Depends:", words[1].hasPrefix("linux-image-") else { continue }
      let name = String(words[1])
      if let version = version(of: name), !version.lexicographicallyPrecedes(oldestVersion) { return name }
    }
    return nil
  }

  /// `linux-image-6.12.117+deb12-amd64` is 6, 12, 117.
  static func version(of name: String) -> [Int]? {
    let text = name.dropFirst("linux-image-".count).prefix { $0.isNumber || $0 == "." }
    let numbers = text.split(separator: ".").compactMap { Int($0) }
    return numbers.count >= 2 ? numbers : nil
  }

  /// Downloads a package into a folder; apt verifies it.
  static func download(_ name: String, into folder: URL) async throws -> URL {
    let script = "cd \"$1\" && exec apt-get --quiet --option APT::Sandbox::User=root download \"$2\""
    try await Command("sh", ["-c", script, "sh", folder.path, name]).run(limit: .seconds(900))
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    guard let package = files.first(where: { $0.pathExtension == "deb" }) else {
      throw Command.Failure(description: "apt-get has downloaded no \(name)")
    }
    return package
  }

  /// Unpacks the kernel and those of its modules that may be needed.
  static func unpack(_ package: URL, into folder: URL) async throws {
    let folders = [
      "crypto", "drivers/bluetooth", "drivers/char", "drivers/virtio", "drivers/hid", "fs", "lib", "net",
      "arch",
    ]
    // A pattern that matches nothing is none of our business: what is missing shows when it is looked for.
    let script = """
      dpkg-deb --fsys-tarfile "$1" >"$2/package.tar" || exit 1
      folder=$2
      shift 2
      tar -x -f "$folder/package.tar" -C "$folder" --wildcards "$@" 2>/dev/null
      rm "$folder/package.tar"
      """
    try await Command(
      "sh",
      ["-c", script, "sh", package.path, folder.path, "./boot/vmlinuz-*", "*/modules.builtin"]
        + folders.map { "*/kernel/\($0)/*" }
    ).run(limit: .seconds(300))
  }
}
