internal import Foundation

/// Bluetooth software of others that tests in the virtual machine use as a peer, for which `.ci/setup tests` cares.
package enum ForeignSoftware: Sendable, CaseIterable {
  /// A client of bluetoothd, in Python; Debian's python3-bleak.
  case bleak
  /// A whole host in Python, of PyPI, in a virtual environment of its own.
  case bumble

  /// The interpreter that finds it.
  package var python: String {
    switch self {
    case .bleak: "/usr/bin/python3"
    case .bumble: Self.environment + "/bin/python"
    }
  }

  /// Why there are no tests with it, in one sentence that says how to mend it; nil where it is installed.
  package var obstacle: String? {
    let files = FileManager.default
    switch self {
    case .bleak:
      return files.fileExists(atPath: "/usr/lib/python3/dist-packages/bleak/__init__.py")
        ? nil : "bleak is not installed; on Debian: apt-get install python3-bleak"
    case .bumble:
      return files.fileExists(atPath: Self.environment + "/installed")
        ? nil : "Bumble is not installed: .ci/setup tests fetches it where pip reaches PyPI or a mirror of it"
    }
  }

  private static let environment =
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../.build/foreign-peers")
    .standardizedFileURL.path
}
