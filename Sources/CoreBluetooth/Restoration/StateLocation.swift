internal import Foundation

/// Where the state of a manager is saved; see docs/restoration.md.
struct StateLocation: Equatable, Sendable {
  var folder: String
  /// Of the file, without extension.
  var name: String

  /// Why there is no such place, in words for the log.
  struct Absence: Error, Equatable {
    var words: String
  }

  /// - Parameter directory: what the program gives for the folder: a path, a file URL, or nil.
  init(
    role: String, identifier: String, directory: Any?, program: String, variables: [String: String]
  ) throws(Absence) {
    name = "\(role).\(Self.fileName(identifier))"
    switch directory {
    case nil: folder = "\(try Self.base(variables))/CoreBluetooth/\(Self.fileName(program))"
    case let path as String where !path.isEmpty: folder = path
    case let url as URL where url.isFileURL: folder = url.path
    default: throw Absence(words: "the value of CBManagerOptionStateDirectoryKey is no path of a folder")
    }
  }

  /// The folder for what programs keep between their runs (XDG Base Directory Specification).
  private static func base(_ variables: [String: String]) throws(Absence) -> String {
    if let state = variables["XDG_STATE_HOME"], state.hasPrefix("/") { return state }
    if let home = variables["HOME"], home.hasPrefix("/") { return "\(home)/.local/state" }
    throw Absence(words: "neither XDG_STATE_HOME nor HOME is an absolute path")
  }

  /// A file name for any text, other for every text.
  static func fileName(_ text: String) -> String {
    let escaped = text.utf8.reduce(into: "") { result, octet in
      let scalar = Unicode.Scalar(octet)
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_": result.unicodeScalars.append(scalar)
      default: result += (octet < 16 ? "%0" : "%") + String(octet, radix: 16, uppercase: true)
      }
    }
    guard escaped.utf8.count > 120 else { return escaped }
    // FNV-1a; a collision is noticed, since the file contains its identifier.
    let hash = text.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3
    }
    let digits = String(hash, radix: 16)
    return "\(escaped.prefix(100))~\(String(repeating: "0", count: 16 - digits.count))\(digits)"
  }
}
