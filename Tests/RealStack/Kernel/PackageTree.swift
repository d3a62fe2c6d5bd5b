internal import Foundation

/// A kernel package, unpacked.
struct PackageTree {
  private let root: URL
  /// Where each module lies, by its name.
  private let modules: [String: URL]
  private let builtin: Set<String>
  private let image: URL?

  init(_ root: URL) {
    self.root = root
    var modules: [String: URL] = [:]
    var builtin: Set<String> = []
    var image: URL?
    let all = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
    while let file = all?.nextObject() as? URL {
      let name = file.lastPathComponent
      if name.hasPrefix("vmlinuz-") {
        image = file
      } else if name == "modules.builtin" {
        builtin = ModuleOrder.builtin(listedIn: (try? String(contentsOf: file, encoding: .utf8)) ?? "")
      } else if name.contains(".ko") {
        modules[ModuleOrder.name(fileName: name)] = file
      }
    }
    (self.modules, self.builtin, self.image) = (modules, builtin, image)
  }

  func writeKernel(to file: URL) async throws {
    guard let image, let (packing, packed) = KernelImage.packed(in: try Data(contentsOf: image)) else {
      throw Command.Failure(description: "the package has no kernel that is packed by xz or zstd")
    }
    let part = root.appending(path: "packed")
    try packed.write(to: part)
    let command = packing.program
    // What follows the packed kernel may be an error for the program, so the result itself is looked at.
    let outcome: Result<Void, any Error>
    do {
      try await Command(command[0], command.dropFirst() + [part.path]).run(into: file)
      outcome = .success(())
    } catch {
      outcome = .failure(error)
    }
    // A program that did not begin has left no file.
    guard KernelImage.isWhole((try? Data(contentsOf: file, options: .mappedIfSafe)) ?? Data()) else {
      try outcome.get()
      throw Command.Failure(description: "\(image.lastPathComponent) has no whole kernel in it")
    }
  }

  /// `modules/NAME.ko`, and the lists `modules/early` and `modules/late`.
  func moduleArchive(early: [String], late: [String]) async throws -> Data {
    // Loading order is decided by what is in the modules, and they are packed; so those that might be needed are unpacked first.
    var objects: [String: Data] = [:]
    var wanted = early + late
    while let next = wanted.popLast() {
      let name = ModuleOrder.name(fileName: next)
      guard objects[name] == nil, !builtin.contains(name) else { continue }
      let object = try await object(name)
      objects[name] = object
      wanted += ModuleOrder.dependencies(of: object)
    }
    var order = ModuleOrder(builtin: builtin)
    for module in early { try order.add(module) { try found($0, in: objects) } }
    let first = order.names
    for module in late { try order.add(module) { try found($0, in: objects) } }

    var archive = CPIOArchive()
    archive.addFolder("modules")
    for (list, names) in [("early", first), ("late", Array(order.names.dropFirst(first.count)))] {
      archive.addFile("modules/\(list)", Data(names.map { "\($0)\n" }.joined().utf8))
    }
    for name in order.names { archive.addFile("modules/\(name).ko", try found(name, in: objects)) }
    return archive.finished()
  }

  private func found(_ name: String, in objects: [String: Data]) throws -> Data {
    guard let object = objects[name] else {
      throw Command.Failure(description: "the package has no module \(name)")
    }
    return object
  }

  private func object(_ name: String) async throws -> Data {
    guard let file = modules[name] else {
      throw Command.Failure(description: "the package has no module \(name)")
    }
    let unpacked = root.appending(path: "\(name).ko")
    switch file.pathExtension {
    case "xz": try await Command("xz", ["--decompress", "--stdout", file.path]).run(into: unpacked)
    case "zst":
      try await Command("zstd", ["--decompress", "--stdout", "--quiet", file.path]).run(into: unpacked)
    default: return try Data(contentsOf: file)
    }
    return try Data(contentsOf: unpacked)
  }
}
