import Foundation
import TestSupport
import Testing

@testable import BulkTransfer

@Suite("Output file")
struct OutputFileTests {
  private let kind = OutputFile.Kind("note") { $0.starts(with: Data("note:".utf8)) }
  private let text = Data("note: new".utf8)
  private let old = Data("note: old and longer".utf8)
  private let image = Data([0x3D, 0xB8, 0xF3, 0x96]) + pattern(5000)

  private func output(_ path: String, patience: Duration = .seconds(600)) throws(TransferError) -> OutputFile
  {
    try OutputFile(path: path, kind: kind, patience: patience)
  }

  private func write(_ path: String) throws(TransferError) {
    let file = try output(path)
    try file.prepare()
    try file.write(text)
  }

  private func link(_ folder: TemporaryFolder, _ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: folder.path(name), withDestinationPath: target)
  }

  private func isLink(_ path: String) -> Bool {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: path)) != nil
  }

  @Test("a file that is not there is made, an empty one and one of its kind are replaced as a whole")
  func regular() throws {
    let folder = TemporaryFolder()
    try folder.write(old, "old")
    try folder.write(Data(), "empty")
    for name in ["new", "old", "empty"] {
      try write(folder.path(name))
      #expect(folder.contents(name) == text)
    }
    #expect(folder.names == ["empty", "new", "old"])
  }

  @Test("who could not read the file that is replaced cannot read the new one")
  func permissions() throws {
    let folder = TemporaryFolder()
    try folder.write(old, "f")
    try #require(unsafe chmod(folder.path("f"), 0o600) == 0)
    try write(folder.path("f"))
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("f"))
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
  }

  @Test("any other file is refused before anything is done, and stays")
  func others() throws {
    let folder = TemporaryFolder()
    try folder.write(image, "fw.bin")
    try link(folder, "link", to: folder.path("fw.bin"))
    for name in ["fw.bin", "link"] {
      let error = #expect(throws: TransferError.self) { try output(folder.path(name)) }
      #expect(error?.code == .invalidArgument)
      #expect(error?.message == "\(folder.path(name)) is there already and is no note")
      #expect(error?.advice != nil)
    }
    #expect(folder.contents("fw.bin") == image)
  }

  @Test("folders, sockets and names that mean one are refused in words", arguments: ["d", "d/", ".", "d/.."])
  func folders(name: String) throws {
    let folder = TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("d"), withIntermediateDirectories: true)
    let error = #expect(throws: TransferError.self) { try output(folder.path(name)) }
    #expect(error?.code == .invalidArgument && error?.message.hasSuffix("is a folder") == true)
  }

  @Test("a folder that is not there is said at once", arguments: ["no/f", "no/", ""])
  func missing(name: String) throws {
    let folder = TemporaryFolder()
    let error = #expect(throws: TransferError.self) { try output(name.isEmpty ? "" : folder.path(name)) }
    #expect(error?.code == .storage)
    #expect(folder.names == [])
  }

  @Test("links are followed and stay links: to a file of the kind, and to one that is not there yet")
  func links() throws {
    let folder = TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("d"), withIntermediateDirectories: true)
    try folder.write(old, "d/there")
    try link(folder, "first", to: "d/there")
    try link(folder, "d/second", to: "../third")
    try link(folder, "third", to: folder.path("d/made"))
    for (name, target) in [("first", "d/there"), ("d/second", "d/made")] {
      try write(folder.path(name))
      #expect(isLink(folder.path(name)))
      #expect(folder.contents(target) == text && !isLink(folder.path(target)))
    }
    #expect(isLink(folder.path("third")))
  }

  @Test("links in a circle, and links where none is followed, are refused")
  func noLinks() throws {
    let folder = TemporaryFolder()
    try link(folder, "a", to: "b")
    try link(folder, "b", to: "a")
    let circle = #expect(throws: TransferError.self) { try output(folder.path("a")) }
    #expect(circle?.code == .invalidArgument && circle?.message.contains("circle") == true)
    try folder.write(old, "f")
    try link(folder, "l", to: "f")
    let error = #expect(throws: TransferError.self) {
      try OutputFile(path: folder.path("l"), kind: kind, followsLinks: false)
    }
    #expect(error?.message.hasSuffix("is a symbolic link") == true)
    #expect(folder.contents("f") == old)
  }

  @Test("a FIFO that nobody reads is refused without waiting, and stays")
  func unreadFIFO() throws {
    let folder = TemporaryFolder()
    try #require(unsafe mkfifo(folder.path("p"), 0o600) == 0)
    let file = try output(folder.path("p"))
    let error = #expect(throws: TransferError.self) { try file.prepare() }
    #expect(error?.code == .storage && error?.message == "nobody reads \(folder.path("p"))")
    let status = try SystemFileOperations().status(of: folder.path("p"), in: nil, followingLinks: false)
    #expect(status.kind == .fifo)
  }

  @Test("a FIFO is written into; a reader that takes nothing does not hold it up for ever")
  func fifo() throws {
    let folder = TemporaryFolder()
    try #require(unsafe mkfifo(folder.path("p"), 0o600) == 0)
    let reader = unsafe open(folder.path("p"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    try #require(reader >= 0)
    defer { close(reader) }
    try write(folder.path("p"))
    var bytes = [UInt8](repeating: 0, count: 100)
    #expect(unsafe read(reader, &bytes, bytes.count) == text.count)
    #expect(Data(bytes.prefix(text.count)) == text)
    let impatient = try output(folder.path("p"), patience: .zero)
    let error = #expect(throws: TransferError.self) { try impatient.write(pattern(1 << 21)) }
    #expect(error?.code == .storage)
  }

  @Test("a character device is written into")
  func device() throws {
    let terminal = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY)
    try #require(terminal >= 0)
    defer { close(terminal) }
    // ioctl_tty(2): TIOCSPTLCK and TIOCGPTN.
    var (lock, number): (Int32, UInt32) = (0, 0)
    try #require(unsafe ioctl(terminal, 0x4004_5431, &lock) == 0)
    try #require(unsafe ioctl(terminal, 0x8004_5430, &number) == 0)
    let name = "/dev/pts/\(number)"
    // Open, so that the other end does not hang up before it is read.
    let other = unsafe open(name, O_RDWR | O_NOCTTY)
    defer { close(other) }
    try write(name)
    var bytes = [UInt8](repeating: 0, count: 100)
    #expect(unsafe read(terminal, &bytes, bytes.count) == text.count)
    #expect(Data(bytes.prefix(text.count)) == text)
  }

  @Test("a file that this process prints to is refused")
  func ownOutput() throws {
    let folder = TemporaryFolder()
    try folder.write(Data(), "out")
    let own = unsafe open(folder.path("out"), O_WRONLY)
    defer { close(own) }
    let error = #expect(throws: TransferError.self) {
      try OutputFile(path: folder.path("out"), kind: kind, apartFrom: [own])
    }
    #expect(error?.code == .invalidArgument)
  }

  @Test("two paths are known to mean one file, whether it is there or not")
  func same() throws {
    let folder = TemporaryFolder()
    try folder.write(old, "there")
    try link(folder, "link", to: "there")
    try link(folder, "dangling", to: "new")
    try #require(unsafe Foundation.link(folder.path("there"), folder.path("hard")) == 0)
    try #require(unsafe mkfifo(folder.path("p"), 0o600) == 0)
    let there = try output(folder.path("there"))
    for name in ["there", "./there", "link", "hard"] {
      #expect(there.isSame(as: try output(folder.path(name))), "\(name)")
    }
    let new = try output(folder.path("new"))
    for name in ["new", ".//new", "dangling"] {
      #expect(new.isSame(as: try output(folder.path(name))), "\(name)")
    }
    #expect(try output(folder.path("p")).isSame(as: output(folder.path("./p"))))
    #expect(!new.isSame(as: there))
  }

  /// What takes the place of a file while a new one is written.
  enum Intruder: CaseIterable, Sendable {
    case link, fifo, folder, file

    func come(_ path: String, _ outside: String) {
      try? FileManager.default.removeItem(atPath: path)
      switch self {
      case .link: try? FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: outside)
      case .fifo: _ = unsafe mkfifo(path, 0o600)
      case .folder: try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      case .file: try? Data("somebody else's".utf8).write(to: URL(filePath: path))
      }
    }

    var kind: FileKind {
      switch self {
      case .link: .symbolicLink
      case .fifo: .fifo
      case .folder: .directory
      case .file: .regular
      }
    }
  }

  @Test(
    "what comes there while the file is written is not replaced",
    arguments: Intruder.allCases, ["before", "at work", "exchange"])
  func meanwhile(intruder: Intruder, moment: String) throws {
    let folder = TemporaryFolder()
    let outside = try folder.write(image, "outside")
    let path = folder.path("f")
    if moment == "exchange" { try folder.write(old, "f") }
    let operations = SwappingOperations(moment == "exchange" ? .exchange : .opened(".tmp")) {
      intruder.come(path, outside)
    }
    let file = try OutputFile(path: path, kind: kind, operations: operations)
    if moment == "before" { intruder.come(path, outside) }
    let error = #expect(throws: TransferError.self) { try file.write(text) }
    #expect(error?.code == .invalidArgument)
    #expect(SystemFileOperations().kind(path) == intruder.kind)
    if intruder == .file { #expect(folder.contents("f") == Data("somebody else's".utf8)) }
    #expect(folder.contents("outside") == image)
    #expect(folder.names == ["f", "outside"])
  }
}

extension SystemFileOperations {
  /// What a path is; nil for nothing.
  func kind(_ path: String) -> FileKind? {
    (try? statusIfPresent(path, in: nil))?.kind
  }
}
