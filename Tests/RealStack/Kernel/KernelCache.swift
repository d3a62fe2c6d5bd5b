package import Foundation

/// The kernel and its modules as a guest boots them, made once and kept in a folder of the user.
package struct KernelCache: Sendable {
  package struct Entry: Sendable {
    /// An uncompressed kernel.
    package let kernel: URL
    /// An archive with the modules, and in which order they are loaded.
    package let modules: URL
  }

  /// What has to be loaded before the file systems of the host are there.
  static let early = ["virtio_mmio", "virtio_console", "9pnet_virtio", "9p", "overlay"]
  /// The Bluetooth stack, with the random numbers and the ciphers of pairing and of bluetoothd.
  static let late = [
    "virtio-rng", "sha512_generic", "drbg", "jitterentropy_rng", "ecb", "cmac", "ctr", "ccm", "ecdh_generic",
    "af_alg",
    "algif_skcipher", "algif_hash", "algif_aead", "bluetooth", "hci_vhci", "rfcomm", "bnep", "hidp", "uhid",
  ]
  /// Entries that nobody has used for so long go when another one is made.
  static let keptUnused: TimeInterval = 30 * 24 * 3600

  package let folder: URL

  /// `real-stack` in the cache of the user.
  package init(environment: [String: String] = ProcessInfo.processInfo.environment) {
    let caches =
      environment["XDG_CACHE_HOME"].flatMap { $0.hasPrefix("/") ? URL(filePath: $0) : nil }
      ?? URL(filePath: environment["HOME"] ?? NSHomeDirectory()).appending(path: ".cache")
    folder = caches.appending(path: "bluehaul/real-stack")
  }

  /// The newest entry, where there is one.
  package func existing() -> Entry? {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    let versions = names.filter { $0.hasSuffix(Self.suffix) && !$0.hasPrefix(".") }
    let newest = versions.max { $0.compare($1, options: .numeric) == .orderedAscending }
    return newest.map { entry(folder.appending(path: $0)) }
  }

  /// The entry, after the package was downloaded and taken apart where that has not been done yet. One process does it, others wait.
  package func filled(note: @Sendable (String) -> Void) async throws -> Entry {
    if let entry = existing() {
      // The time of its folder says when an entry was used last.
      try? FileManager.default.setAttributes(
        [.modificationDate: Date()], ofItemAtPath: entry.kernel.deletingLastPathComponent().path)
      return entry
    }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let lock = try await FileLock.waiting(for: folder.appending(path: "lock"))
    defer { lock.release() }
    if let entry = existing() { return entry }
    guard let package = KernelPackage.name() else { throw VirtualMachine.Failure.kernel(Self.unknown) }
    note("downloading \(package), once")
    do {
      return try await fill(from: package)
    } catch {
      throw VirtualMachine.Failure.kernel("\(error)")
    }
  }

  static let unknown =
    "apt knows no package linux-image-6.12-amd64, nor a newer kernel of Debian; does it after apt-get update?"

  /// Of what an entry depends on besides the package.
  private static var suffix: String {
    let recipe = "1 \(early) \(late)"
    let hash = recipe.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
    return "-" + String(hash, radix: 16)
  }

  private func entry(_ folder: URL) -> Entry {
    Entry(kernel: folder.appending(path: "vmlinux"), modules: folder.appending(path: "modules.cpio"))
  }

  private func fill(from package: String) async throws -> Entry {
    let files = FileManager.default
    let work = folder.appending(path: ".\(UUID())")
    defer { try? files.removeItem(at: work) }
    let (download, unpacked, made) = (
      work.appending(path: "package"), work.appending(path: "unpacked"), work.appending(path: "made")
    )
    for folder in [download, unpacked, made] {
      try files.createDirectory(at: folder, withIntermediateDirectories: true)
    }
    try await KernelPackage.unpack(KernelPackage.download(package, into: download), into: unpacked)
    let tree = PackageTree(unpacked)
    let entry = entry(made)
    try await tree.writeKernel(to: entry.kernel)
    try await tree.moduleArchive(early: Self.early, late: Self.late).write(to: entry.modules)

    for name in try files.contentsOfDirectory(atPath: folder.path) where name != "lock" {
      let old = folder.appending(path: name)
      let used = try? files.attributesOfItem(atPath: old.path)[.modificationDate] as? Date
      if let used, used.timeIntervalSinceNow < -Self.keptUnused { try? files.removeItem(at: old) }
    }
    let version = package.replacing("linux-image-", with: "")
    let finished = folder.appending(path: version + Self.suffix)
    try files.moveItem(at: made, to: finished)
    return self.entry(finished)
  }
}
