package import Foundation

/// In which order modules are inserted, so that each finds what it depends on.
///
/// A package has no modules.dep, which is made at installation; but each module says in its own `.modinfo` section what it needs.
package struct ModuleOrder {
  /// Names with underscores, as the kernel has them.
  package private(set) var names: [String] = []
  /// The modules with their dependencies done.
  private var seen: Set<String>

  /// `builtin` are the names that are part of the kernel.
  package init(builtin: Set<String>) {
    seen = Set(builtin.map { Self.name($0) })
  }

  /// Adds a module after everything that it needs; `contents` gives the object file of a name.
  package mutating func add(_ module: String, contents: (String) throws -> Data) rethrows {
    let name = Self.name(module)
    guard seen.insert(name).inserted else { return }
    for dependency in Self.dependencies(of: try contents(name)) {
      try add(dependency, contents: contents)
    }
    names.append(name)
  }

  /// modules.builtin lists paths of object files, one a line.
  package static func builtin(listedIn text: String) -> Set<String> {
    Set(text.split(separator: "\n").map { name(fileName: String($0.split(separator: "/").last ?? "")) })
  }

  /// The name of a module in a file such as `hci-vhci.ko.xz`.
  package static func name(fileName: String) -> String {
    name(String(fileName.prefix { $0 != "." }))
  }

  /// The value of `depends=`, a list with commas.
  package static func dependencies(of object: Data) -> [String] {
    guard let start = object.range(of: Data("\0depends=".utf8))?.upperBound else { return [] }
    let value = object[start...].prefix { $0 != 0 }
    return String(decoding: value, as: UTF8.self).split(separator: ",").map(String.init)
  }

  private static func name(_ spelling: String) -> String { spelling.replacing("-", with: "_") }
}
