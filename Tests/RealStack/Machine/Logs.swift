package import Foundation

/// The ends of what the parts of a machine have logged.
package struct Logs: Sendable, CustomStringConvertible {
  static let names = ["qemu", "console", "session", "btvirt", "bluetoothd", "dmesg"]
  static let keptLines = 25

  package let ends: [(name: String, lines: [String])]

  package init(in folder: URL) {
    ends = Self.names.compactMap { name in
      guard let data = try? Data(contentsOf: folder.appending(path: "\(name).log")) else { return nil }
      let lines = String(decoding: data.suffix(16384), as: UTF8.self).split(separator: "\n").suffix(
        Self.keptLines)
      return lines.isEmpty ? nil : (name, lines.map(String.init))
    }
  }

  package var description: String {
    ends.map { "--- \($0.name)\n\($0.lines.joined(separator: "\n"))" }.joined(separator: "\n")
  }
}
