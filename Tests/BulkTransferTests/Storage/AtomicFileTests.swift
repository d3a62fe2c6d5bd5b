import Foundation
import TestSupport
import Testing

@testable import BulkTransfer

@Suite("Atomic file")
struct AtomicFileTests {
  @Test("holds what was written last")
  func replaces() throws {
    let folder = TemporaryFolder()
    let file = AtomicFile(path: folder.path("f"))
    #expect(try file.read(limit: 10) == nil)
    try file.write(Data("one".utf8))
    try file.write(Data("two".utf8))
    #expect(try file.read(limit: 3) == Data("two".utf8))
    #expect(folder.names == ["f"])
  }

  @Test("a file beyond the limit is refused")
  func limit() throws {
    let folder = TemporaryFolder()
    let file = AtomicFile(path: try folder.write(Data(count: 11), "f"))
    let error = #expect(throws: TransferError.self) { try file.read(limit: 10) }
    #expect(error?.code == .damagedState)
  }

  @Test(
    "is the old one or the new one, at whatever call an outage comes",
    arguments: VolatileFileSystem.Outage.allCases)
  func crash(outage: VolatileFileSystem.Outage) throws {
    let (old, new) = (Data("old contents".utf8), Data("new".utf8))
    var sawOld = false
    for call in 0..<20 {
      let system = VolatileFileSystem()
      system.put(old, "f")
      let file = AtomicFile(path: "/d/f", operations: system)
      system.fail(after: call)
      let completed = (try? file.write(new)) != nil
      system.recover(from: outage)
      let found = try file.read(limit: 100)
      #expect(found == new || (found == old && !completed), "after \(call) calls")
      sawOld = sawOld || found == old
      try file.removeLeftovers()
      #expect(system.names == ["f"])
      if completed {
        #expect(sawOld && call > 3)
        return
      }
    }
    Issue.record("the write never completed")
  }

  @Test(
    "a failure leaves the old contents and no temporary file, and says what failed",
    arguments: [
      (ENOSPC, TransferError.Code.diskFull, "no space is left to write /d/f"),
      (EDQUOT, .diskFull, "no space is left to write /d/f"),
      (EIO, .storage, "the disk failed to write /d/f"),
      (EACCES, .storage, "not permitted to write /d/f"),
      (EROFS, .storage, "cannot write /d/f: the file system is read-only"),
    ])
  func failure(code: Int32, expected: TransferError.Code, message: String) throws {
    for call in 0..<4 {
      let system = VolatileFileSystem()
      system.put(Data("old".utf8), "f")
      system.fail(after: call, code: code, once: true)
      let error = #expect(throws: TransferError.self) {
        try AtomicFile(path: "/d/f", operations: system).write(Data("new".utf8))
      }
      #expect(error?.code == expected)
      #expect(error?.message == message)
      #expect(system.names == ["f"])
      #expect(system.contents("f") == Data("old".utf8))
    }
  }

  @Test("a missing folder, a folder in its place and a FIFO in its place are errors")
  func places() throws {
    let folder = TemporaryFolder()
    #expect(throws: TransferError.self) { try AtomicFile(path: folder.path("no/f")).write(Data()) }
    #expect(throws: TransferError.self) { try AtomicFile(path: folder.path).write(Data()) }
    #expect(throws: TransferError.self) { try AtomicFile(path: folder.path).read(limit: 1) }
    try #require(unsafe mkfifo(folder.path("fifo"), 0o600) == 0)
    #expect(throws: TransferError.self) { try AtomicFile(path: folder.path("fifo")).read(limit: 1) }
    #expect(folder.names == ["fifo"])
  }
}

@Suite("File lock")
struct FileLockTests {
  @Test("a second claim is refused with the pid of the holder, until the first is gone")
  func exclusive() throws {
    let folder = TemporaryFolder()
    let first = try FileLock(path: folder.path("l"), purpose: "this transfer")
    let error = #expect(throws: TransferError.self) {
      try FileLock(path: folder.path("l"), purpose: "this transfer")
    }
    #expect(error?.code == .locked)
    #expect(error?.message == "another process (pid \(getpid())) works on this transfer")
    first.release()
    let second = try FileLock(path: folder.path("l"), purpose: "this transfer")
    second.removeAndRelease()
    #expect(folder.names == [])
  }

  @Test("a lock file that a dead process has left does no harm")
  func stale() throws {
    let folder = TemporaryFolder()
    try folder.write(Data("999999999\n".utf8), "l")
    let lock = try FileLock(path: folder.path("l"), purpose: "this transfer")
    #expect(folder.contents("l") == Data("\(getpid())\n".utf8))
    lock.release()
  }

  @Test(
    "a lock that is given up is free, also where a program that is being started has copies of the descriptors",
    .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd"), "descriptors are listed in /proc"),
    arguments: ["released", "removed", "let go"])
  func copies(how: String) throws {
    let folder = TemporaryFolder()
    let path = URL(filePath: folder.path).resolvingSymlinksInPath().path + "/l"
    var first: FileLock? = try FileLock(path: path, purpose: "this transfer")
    let copies = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) == path
    }.compactMap { Int32($0) }.map { dup($0) }
    #expect(copies.count == 1)
    defer { for copy in copies { close(copy) } }
    switch how {
    case "released": first?.release()
    case "removed": first?.removeAndRelease()
    default: first = nil
    }
    try FileLock(path: path, purpose: "this transfer").release()
    withExtendedLifetime(first) {}
  }

  @Test("a symbolic link in its place is not followed")
  func link() throws {
    let folder = TemporaryFolder()
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("l"), withDestinationPath: folder.path("target"))
    #expect(throws: TransferError.self) { try FileLock(path: folder.path("l"), purpose: "x") }
    #expect(folder.names == ["l"])
  }
}
