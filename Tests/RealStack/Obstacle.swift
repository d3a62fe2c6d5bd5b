internal import Foundation

extension VirtualMachine {
  /// What the packages of Debian are called that have what is needed; apt-get is needed besides, once, for the kernel.
  package static let packages = [
    "qemu-system-x86", "busybox-static", "dbus", "bluez", "bluez-test-tools", "util-linux", "xz-utils",
    "zstd",
  ]

  /// Why this machine cannot run virtual machines, in one sentence that says how to mend it; nil where it can. Root is not needed.
  package static let obstacle: String? = findObstacle()

  static let daemonPath = ["/usr/libexec/bluetooth/bluetoothd", "/usr/lib/bluetooth/bluetoothd"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  private static func findObstacle() -> String? {
    #if !arch(x86_64)
      return "the virtual machine is emulated on x86-64 only, because its clock is the processor's"
    #else
      if Guest.isHere { return "no virtual machine in the virtual machine" }
      var missing: [String] = []
      for (program, package) in [
        ("qemu-system-x86_64", "qemu-system-x86"), ("dbus-daemon", "dbus"), ("dbus-send", "dbus"),
        ("btvirt", "bluez-test-tools"), ("btmgmt", "bluez"), ("hciconfig", "bluez"),
        ("setpriv", "util-linux"),
        ("script", "bsdutils"),
      ] where Command.path(of: program) == nil {
        missing.append("\(program) (\(package))")
      }
      if daemonPath == nil { missing.append("bluetoothd (bluez)") }
      if !hasStaticBusybox { missing.append("a static busybox (busybox-static)") }
      guard missing.isEmpty else {
        return "not installed: \(missing.joined(separator: ", ")); on Debian: "
          + "apt-get install \(packages.joined(separator: " "))"
      }
      guard KernelCache().existing() == nil else { return nil }
      let fetching = ["apt-get", "apt-cache", "dpkg-deb", "tar", "xz", "zstd"]
      if let program = fetching.first(where: { Command.path(of: $0) == nil }) {
        return "\(program) is missing, with which a kernel would be fetched"
      }
      return KernelPackage.name() == nil ? KernelCache.unknown : nil
    #endif
  }

  /// The guest starts it where no libraries are.
  private static var hasStaticBusybox: Bool {
    guard let path = Command.path(of: "busybox"), let file = FileHandle(forReadingAtPath: path) else {
      return false
    }
    let start = (try? file.read(upToCount: 4096)) ?? nil
    // The name of the dynamic linker stands near the beginning of what needs one.
    return start.map { $0.range(of: Data("/ld-linux".utf8)) == nil } ?? false
  }
}
