import Foundation
import SystemCalls
import TestSupport
import Testing

@testable import BulkTransfer

@Suite("File source")
struct FileSourceTests {
  /// What opening a path says, and that it says it at once.
  func refusal(_ path: String) -> String? {
    let error = #expect(throws: TransferError.self) { try FileSource(path: path) }
    #expect(error?.code == .unusableFile)
    return error?.message
  }

  @Test("gives the bytes at any place")
  func reads() throws {
    let folder = TemporaryFolder()
    let bytes = pattern(3000)
    let source = try FileSource(path: folder.write(bytes, "f"))
    #expect(source.size == 3000)
    #expect(try source.all(step: 7) == bytes)
    #expect(try source.read(at: 2999, count: 1) == bytes[2999...])
    #expect(try source.read(at: 3000, count: 0) == Data())
    for (offset, count) in [(3000, 1), (0, 3001), (0, -1), (UInt64.max, 1), (0, Int.max)] as [(UInt64, Int)] {
      let error = #expect(throws: TransferError.self) { try source.read(at: offset, count: count) }
      #expect(error?.code == .invalidArgument)
    }
  }

  @Test("what is no file is refused, each kind in its own words and without waiting")
  func kinds() async throws {
    let folder = TemporaryFolder()
    try folder.write(Data(), "empty")
    try #require(unsafe mkfifo(folder.path("fifo"), 0o600) == 0)
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("dangling"), withDestinationPath: "nothing")
    try FileManager.default.createSymbolicLink(atPath: folder.path("loop"), withDestinationPath: "loop")
    let socket = try ListeningSocket(path: folder.path("s"))
    #expect(refusal(folder.path) == "\(folder.path) is a folder, not a file")
    #expect(refusal("/dev/zero") == "/dev/zero is a character device, not a file")
    #expect(refusal(folder.path("fifo")) == "\(folder.path("fifo")) is a FIFO, not a file")
    #expect(refusal(folder.path("s")) == "\(folder.path("s")) is a socket, not a file")
    #expect(refusal(folder.path("empty")) == "\(folder.path("empty")) is empty")
    #expect(refusal(folder.path("none")) == "\(folder.path("none")) does not exist")
    #expect(refusal(folder.path("empty/x"))?.hasSuffix("a part of the path is no folder") == true)
    #expect(
      refusal(folder.path("dangling"))?.hasSuffix("is a symbolic link to something that does not exist")
        == true)
    #expect(refusal(folder.path("loop"))?.hasSuffix("leads through symbolic links in a circle") == true)
    #expect(refusal(folder.path(String(repeating: "x", count: 300)))?.hasSuffix("is too long") == true)
    #expect(refusal("") == " does not exist")
    socket.close()
  }

  @Test("a symbolic link to a file is followed")
  func link() throws {
    let folder = TemporaryFolder()
    try folder.write(Data([1, 2, 3]), "f")
    try FileManager.default.createSymbolicLink(atPath: folder.path("l"), withDestinationPath: "f")
    #expect(try FileSource(path: folder.path("l")).all() == Data([1, 2, 3]))
  }

  @Test(
    "failures of the system are told in words",
    arguments: [
      (EACCES, "not permitted to read /d/f"), (EIO, "the disk failed to read /d/f"),
      (EMFILE, "cannot open /d/f: too many files are open"),
    ])
  func failures(code: Int32, message: String) {
    let system = VolatileFileSystem()
    system.put(Data([1]), "f")
    system.failOpens(code)
    let error = #expect(throws: TransferError.self) { try FileSource(path: "/d/f", operations: system) }
    #expect(error?.code == .unusableFile)
    #expect(error?.message == message)
  }

  @Test("a block device is told from a character device")
  func blockDevice() {
    let error = #expect(throws: TransferError.self) {
      try FileSource(path: "/d/f", operations: StatusOverride(kind: .blockDevice))
    }
    #expect(error?.message == "/d/f is a block device, not a file")
  }

  @Test("a file that becomes shorter, longer or is written to is noticed")
  func changes() throws {
    let folder = TemporaryFolder()
    let path = try folder.write(pattern(3000), "f")
    func change(_ body: (FileHandle) throws -> Void) throws -> (FileSource, TransferError?) {
      try pattern(3000).write(to: URL(fileURLWithPath: path))
      let source = try FileSource(path: path)
      try source.checkUnchanged()
      try body(try #require(FileHandle(forUpdatingAtPath: path)))
      let error = #expect(throws: TransferError.self) { try source.checkUnchanged() }
      #expect(error?.code == .unusableFile && error?.isRetriable == true)
      return (source, error)
    }
    let (short, error) = try change { try $0.truncate(atOffset: 2000) }
    #expect(error?.message == "\(path) has changed while it was read: 3000 bytes before, 2000 now")
    let cut = #expect(throws: TransferError.self) { try short.read(at: 1500, count: 1000) }
    #expect(cut?.message == "\(path) has become shorter while it was read: it ends at 2000, was 3000 bytes")
    #expect(try change { try $0.truncate(atOffset: 4000) }.1?.message.hasSuffix("4000 now") == true)
    let touched = try change { _ in
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: path)
    }
    #expect(touched.1?.message == "\(path) was written to while it was read")
  }

  @Test("control characters in a path do not reach the terminal")
  func printable() {
    #expect(refusal("/no\u{1B}[31m/\u{202E}x") == "/no\\u{1B}[31m/\\u{202E}x does not exist")
  }
}

/// A Unix socket that exists in the file system.
struct ListeningSocket {
  private let descriptor: Int32

  init(path: String) throws {
    #if canImport(Glibc)
      descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
      descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let count = MemoryLayout.size(ofValue: address.sun_path)
    guard path.utf8.count < count else { throw TransferError(.invalidArgument, "path too long for a socket") }
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(descriptor, $0, size) }
    }
    guard result == 0 else { throw TransferError(.storage, "bind failed") }
  }

  func close() { _ = Foundation.close(descriptor) }
}

/// A file system in which everything is of one kind.
struct StatusOverride: FileOperations {
  var kind: FileKind
  private let system = VolatileFileSystem()

  init(kind: FileKind) {
    self.kind = kind
    system.put(Data([1]), "f")
  }

  func status(of name: String, in directory: Int32?, followingLinks: Bool) throws(SystemError) -> FileStatus {
    var status = try system.status(of: name, in: directory, followingLinks: followingLinks)
    status.kind = kind
    return status
  }

  func open(_ name: String, in directory: Int32?, flags: Int32, mode: UInt32) throws(SystemError) -> Int32 {
    try system.open(name, in: directory, flags: flags, mode: mode)
  }
  func close(_ descriptor: Int32) { system.close(descriptor) }
  func status(of descriptor: Int32) throws(SystemError) -> FileStatus { try system.status(of: descriptor) }
  func read(_ descriptor: Int32, at offset: UInt64, count: Int) throws(SystemError) -> Data {
    try system.read(descriptor, at: offset, count: count)
  }
  func write(_ descriptor: Int32, _ bytes: Data, at offset: UInt64) throws(SystemError) {}
  func truncate(_ descriptor: Int32, to size: UInt64) throws(SystemError) {}
  func sync(_ descriptor: Int32) throws(SystemError) {}
  func syncContents(_ descriptor: Int32) throws(SystemError) {}
  func forgetCached(_ descriptor: Int32) {}
  func rename(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {}
  func renameExclusively(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {}
  func exchange(_ name: String, with other: String, in directory: Int32) throws(SystemError) {}
  func target(ofLink path: String) throws(SystemError) -> String { path }
  func link(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {}
  func remove(_ name: String, in directory: Int32) throws(SystemError) {}
  func makeDirectory(_ name: String, in directory: Int32?, mode: UInt32) throws(SystemError) {}
  func names(in directory: Int32) throws(SystemError) -> [String] { [] }
  func lock(_ descriptor: Int32) throws(SystemError) -> Bool { true }
  func unlock(_ descriptor: Int32) {}
  func freeSpace(of descriptor: Int32) throws(SystemError) -> UInt64 { 0 }
}
