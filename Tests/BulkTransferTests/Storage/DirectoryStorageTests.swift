import Foundation
import TestSupport
import Testing

@testable import BulkTransfer

extension ReceiverPart {
  /// Receives bytes from the durable offset on, in writes of 1000 bytes with a sync after each `interval`.
  func receive(_ bytes: Data, interval: Int = 4000) throws {
    var offset = Int(durableOffset)
    while offset < bytes.count {
      let end = min(offset + 1000, bytes.count)
      _ = try write(bytes[offset..<end], at: UInt64(offset))
      if end % interval == 0 || end == bytes.count { _ = try sync(through: UInt64(end)) }
      offset = end
    }
  }

  /// Receives the rest, reads all of it back and finishes.
  func finish(_ bytes: Data) throws -> String {
    try receive(bytes)
    return try commit(verified: digest())
  }
}

@Suite("Directory storage")
struct DirectoryStorageTests {
  let bytes = pattern(10_000)

  @Test("the file appears under its name when it is whole and verified, and nothing else is left")
  func wholeObject() throws {
    let folder = TemporaryFolder()
    let storage = try DirectoryStorage(path: folder.path)
    let object = try ReceivedObject(bytes)
    let part = try storage.part(object)
    try part.receive(bytes)
    #expect(folder.names.filter { !$0.hasPrefix(".") } == [])
    #expect(try part.commit(verified: part.digest()) == folder.path("fw.bin"))
    #expect(folder.contents("fw.bin") == bytes)
    #expect(folder.names == [".bluehaul.lock", "fw.bin"])
    guard case .complete(folder.path("fw.bin")) = try storage.open(object) else {
      Issue.record("the object is there and must be recognised")
      return
    }
  }

  @Test("a folder that is missing is made, a file in its place is an error")
  func folders() throws {
    let folder = TemporaryFolder()
    _ = try DirectoryStorage(path: folder.path("out")).part(ReceivedObject(bytes)).finish(bytes)
    #expect(folder.contents("out/fw.bin") == bytes)
    #expect(throws: TransferError.self) { try DirectoryStorage(path: folder.path("out/fw.bin")) }
    #expect(throws: TransferError.self) { try DirectoryStorage(path: folder.path("no/such")) }
  }

  @Test("goes on where it stood, in a new process")
  func resume() throws {
    let folder = TemporaryFolder()
    let object = try ReceivedObject(bytes)
    do {
      let part = try DirectoryStorage(path: folder.path).part(object)
      _ = try part.write(bytes.prefix(6000), at: 0)
      _ = try part.sync(through: 4096)
    }
    let part = try DirectoryStorage(path: folder.path).part(object)
    #expect(part.durableOffset == 4096)
    #expect(throws: TransferError.self) { try part.read(at: 4096, count: 1) }
    #expect(try part.finish(bytes) == folder.path("fw.bin"))
    #expect(folder.contents("fw.bin") == bytes)
  }

  @Test("goes on after SIGKILL")
  func killed() async throws {
    let folder = TemporaryFolder()
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
      let bytes = pattern(10_000)
      let part = try DirectoryStorage(path: path).part(ReceivedObject(bytes))
      try part.receive(bytes.prefix(8000))
      _ = try part.write(bytes[8000..<8500], at: 8000)
      kill(getpid(), SIGKILL)
    }
    let part = try DirectoryStorage(path: folder.path).part(ReceivedObject(bytes))
    #expect(part.durableOffset == 8000)
    _ = try part.finish(bytes)
    #expect(folder.contents("fw.bin") == bytes)
  }

  @Test("damage below the resume offset shows in the whole hash, and no file appears")
  func damage() throws {
    let folder = TemporaryFolder()
    let object = try ReceivedObject(bytes)
    try DirectoryStorage(path: folder.path).part(object).receive(bytes.prefix(8000))
    let name = try #require(folder.names.first { $0.hasSuffix(".part") })
    var damaged = try #require(folder.contents(name))
    damaged[100] ^= 1
    try folder.write(damaged, name)
    let part = try DirectoryStorage(path: folder.path).part(object)
    #expect(part.durableOffset == 8000)
    let error = #expect(throws: TransferError.self) { try part.finish(bytes) }
    #expect(error?.code == .verificationFailed)
    #expect(folder.names.contains("fw.bin") == false)
    try part.discard()
    #expect(folder.names == [".bluehaul.lock"])
  }

  @Test(
    "names that could do harm are refused, and nothing is written",
    arguments: [
      "", ".", "..", "../fw.bin", "/etc/passwd", "a/b", "a\\b", "..\\fw.bin", ".hidden", ".bluehaul.lock",
      "-rf", "fw\0.bin",
      "fw\n.bin", "fw\u{1B}[31m.bin", "fw\u{7F}", "fw\u{85}", "\u{202E}nib.wf", "fw\u{200B}.bin",
      "fw\u{2028}", " fw", "fw ",
      "\u{A0}fw", "fw\u{E000}", String(repeating: "x", count: 201), String(repeating: "ä", count: 101),
    ])
  func hostileNames(name: String) throws {
    let folder = TemporaryFolder()
    let storage = try DirectoryStorage(path: folder.path("out"))
    let error = #expect(throws: TransferError.self) { try storage.open(ReceivedObject(bytes, name: name)) }
    #expect(error?.code == .nameNotAcceptable)
    #expect(error?.message.unicodeScalars.contains { $0.isUnprintable } == false)
    #expect(folder.names == ["out"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("out")) == [".bluehaul.lock"])
  }

  @Test(
    "names that people give to files are taken as they are",
    arguments: [
      "fw", "fw.bin", "Firmware v1.2 (final).hex", "прошивка.bin", "ファーム.bin", "🚀.bin", "a..b", "~", "con",
      String(repeating: "x", count: 200),
    ])
  func ordinaryNames(name: String) throws {
    let folder = TemporaryFolder()
    let storage = try DirectoryStorage(path: folder.path)
    #expect(try storage.part(ReceivedObject(bytes, name: name)).finish(bytes) == folder.path(name))
    #expect(folder.contents(name) == bytes)
  }

  @Test("another file of that name is kept: the object is refused before the first byte")
  func refusePolicy() throws {
    let folder = TemporaryFolder()
    try folder.write(Data("mine".utf8), "fw.bin")
    let storage = try DirectoryStorage(path: folder.path)
    let error = #expect(throws: TransferError.self) { try storage.open(ReceivedObject(bytes)) }
    #expect(error?.code == .nameTaken)
    #expect(folder.contents("fw.bin") == Data("mine".utf8))
  }

  @Test("a file that takes the name meanwhile is kept, and the part too")
  func refusePolicyLate() throws {
    let folder = TemporaryFolder()
    let storage = try DirectoryStorage(path: folder.path)
    let part = try storage.part(ReceivedObject(bytes))
    try part.receive(bytes)
    try folder.write(Data("mine".utf8), "fw.bin")
    let error = #expect(throws: TransferError.self) { try part.commit(verified: part.digest()) }
    #expect(error?.code == .nameTaken)
    #expect(folder.contents("fw.bin") == Data("mine".utf8))
    try FileManager.default.removeItem(atPath: folder.path("fw.bin"))
    #expect(try part.commit(verified: part.digest()) == folder.path("fw.bin"))
  }

  @Test("another file of that name is replaced, but not before the object is verified")
  func replacePolicy() throws {
    let folder = TemporaryFolder()
    try folder.write(Data("mine".utf8), "fw.bin")
    let storage = try DirectoryStorage(path: folder.path, policy: .init(existingFile: .replace))
    let part = try storage.part(ReceivedObject(bytes))
    try part.receive(bytes)
    #expect(folder.contents("fw.bin") == Data("mine".utf8))
    _ = try part.commit(verified: part.digest())
    #expect(folder.contents("fw.bin") == bytes)
  }

  @Test(
    "what is no file and comes there while the object is received stays, and so does the part",
    arguments: [OutputFileTests.Intruder.link, .fifo, .folder], [false, true])
  func replacePolicyLate(intruder: OutputFileTests.Intruder, isLast: Bool) throws {
    let folder = TemporaryFolder()
    let outside = try folder.write(pattern(700), "outside")
    let final = folder.path("in/fw.bin")
    // At the last moment: between the look at what is there and the exchange of names.
    let operations = SwappingOperations(.exchange) {
      intruder.come(final, outside)
    }
    try FileManager.default.createDirectory(atPath: folder.path("in"), withIntermediateDirectories: true)
    try folder.write(Data("mine".utf8), "in/fw.bin")
    let storage = try DirectoryStorage(
      path: folder.path("in"), policy: .init(existingFile: .replace), operations: operations)
    let part = try storage.part(ReceivedObject(bytes))
    try part.receive(bytes)
    if !isLast { intruder.come(final, outside) }
    // Without that moment: what is there by then is seen, and no names are exchanged.
    let error = #expect(throws: TransferError.self) { try part.commit(verified: part.digest()) }
    #expect(error?.code == .nameTaken)
    #expect(SystemFileOperations().kind(final) == intruder.kind)
    #expect(folder.contents("outside") == pattern(700))
    part.close()
    try FileManager.default.removeItem(atPath: final)
    let again = try storage.part(ReceivedObject(bytes))
    #expect(again.durableOffset == UInt64(bytes.count))
    _ = try again.commit(verified: again.digest())
    #expect(folder.contents("in/fw.bin") == bytes)
  }

  @Test("the object gets the first number that is free; the same bytes are found under their number")
  func numberPolicy() throws {
    let folder = TemporaryFolder()
    try folder.write(Data("mine".utf8), "fw.tar.bin")
    try folder.write(Data("other".utf8), "fw.tar-1.bin")
    let storage = try DirectoryStorage(path: folder.path, policy: .init(existingFile: .number))
    let object = try ReceivedObject(bytes, name: "fw.tar.bin")
    #expect(try storage.part(object).finish(bytes) == folder.path("fw.tar-2.bin"))
    guard case .complete(folder.path("fw.tar-2.bin")) = try storage.open(object) else {
      Issue.record("the object is there and must be recognised")
      return
    }
  }

  @Test(
    "a folder or a symbolic link of that name is never replaced or followed",
    arguments: DirectoryStorage.ExistingFilePolicy.allCases)
  func special(policy: DirectoryStorage.ExistingFilePolicy) throws {
    let folder = TemporaryFolder()
    let outside = try folder.write(bytes, "outside")
    try FileManager.default.createDirectory(atPath: folder.path("out/dir"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(atPath: folder.path("out/link"), withDestinationPath: outside)
    let storage = try DirectoryStorage(path: folder.path("out"), policy: .init(existingFile: policy))
    let other = pattern(10_000, seed: 9)
    for name in ["dir", "link"] {
      if policy == .number {
        #expect(try storage.part(ReceivedObject(other, name: name)).finish(other).hasSuffix("\(name)-1"))
        try FileManager.default.removeItem(atPath: folder.path("out/\(name)-1"))
      } else {
        let error = #expect(throws: TransferError.self) {
          try storage.open(ReceivedObject(other, name: name))
        }
        #expect(error?.code == .nameTaken)
      }
    }
    #expect(folder.contents("outside") == bytes)
  }

  @Test(
    "a name that was taken meanwhile is refused at the end, and all bytes stay for another name",
    arguments: [true, false])
  func takenMeanwhile(isFreed: Bool) throws {
    let folder = TemporaryFolder()
    let other = pattern(700, seed: 9)
    let storage = try DirectoryStorage(path: folder.path)
    let part = try storage.part(ReceivedObject(bytes, name: "fw.bin"))
    try part.receive(bytes)
    try folder.write(other, "fw.bin")
    let error = #expect(throws: TransferError.self) { try part.commit(verified: part.object.sha256) }
    #expect(error?.code == .nameTaken)
    part.close()
    #expect(folder.contents("fw.bin") == other)
    if isFreed { try FileManager.default.removeItem(atPath: folder.path("fw.bin")) }
    let name = isFreed ? "fw.bin" : "fw-2.bin"
    let again = try storage.part(ReceivedObject(bytes, name: name))
    #expect(again.durableOffset == UInt64(bytes.count))
    #expect(try again.commit(verified: again.digest()).hasSuffix("/\(name)"))
    #expect(folder.contents(name) == bytes)
    if !isFreed { #expect(folder.contents("fw.bin") == other) }
  }

  @Test("the lock is in the folder that was opened, wherever its path leads by then")
  func lockInPlace() throws {
    let folder = TemporaryFolder()
    for name in ["in", "elsewhere"] {
      try FileManager.default.createDirectory(atPath: folder.path(name), withIntermediateDirectories: true)
    }
    let operations = SwappingOperations(.opened(folder.path("in"))) {
      try? FileManager.default.moveItem(atPath: folder.path("in"), toPath: folder.path("moved"))
      try? FileManager.default.createSymbolicLink(
        atPath: folder.path("in"), withDestinationPath: folder.path("elsewhere"))
    }
    let storage = try DirectoryStorage(path: folder.path("in"), operations: operations)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("elsewhere")) == [])
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.path("moved")) == [DirectoryStorage.lockName]
    )
    let error = #expect(throws: TransferError.self) { try DirectoryStorage(path: folder.path("moved")) }
    #expect(error?.code == .locked)
    withExtendedLifetime(storage) {}
  }

  @Test("a symbolic link in the place of the lock is not followed")
  func linkedLock() throws {
    let folder = TemporaryFolder()
    try FileManager.default.createSymbolicLink(
      atPath: folder.path(DirectoryStorage.lockName), withDestinationPath: folder.path("target"))
    #expect(throws: TransferError.self) { try DirectoryStorage(path: folder.path) }
    #expect(folder.contents("target") == nil)
  }

  @Test("a folder has one receiver, a part has one owner")
  func locks() throws {
    let folder = TemporaryFolder()
    let storage = try DirectoryStorage(path: folder.path)
    let error = #expect(throws: TransferError.self) { try DirectoryStorage(path: folder.path) }
    #expect(error?.code == .locked)
    #expect(error?.message.contains("pid \(getpid())") == true)
    let object = try ReceivedObject(bytes)
    let part = try storage.part(object)
    #expect(throws: TransferError.self) { try storage.open(object) }
    part.close()
    #expect(throws: TransferError.self) { try part.write(Data([1]), at: 0) }
    _ = try storage.part(object)
  }

  @Test("an object beyond the limit is refused, with both numbers")
  func sizeLimit() throws {
    let folder = TemporaryFolder()
    let storage = try DirectoryStorage(path: folder.path, policy: .init(largestObject: 9999))
    #expect(try storage.limits().largestObject == 9999)
    let error = #expect(throws: TransferError.self) { try storage.open(ReceivedObject(bytes)) }
    #expect(error?.code == .objectTooLarge)
    #expect(error?.message == "the object has 10000 bytes, at most 9999 are taken")
  }

  @Test("ranges that a peer could make up are errors")
  func ranges() throws {
    let folder = TemporaryFolder()
    let part = try DirectoryStorage(path: folder.path).part(ReceivedObject(bytes))
    _ = try part.write(bytes.prefix(500), at: 0)
    _ = try part.sync(through: 500)
    #expect(throws: TransferError.self) { try part.write(Data(count: 1), at: 499) }
    #expect(throws: TransferError.self) { try part.write(Data(count: 9501), at: 500) }
    #expect(throws: TransferError.self) { try part.write(Data(count: 1), at: .max) }
    #expect(throws: TransferError.self) { try part.sync(through: 501) }
    #expect(throws: TransferError.self) { try part.sync(through: 499) }
    #expect(throws: TransferError.self) { try part.rewind(to: 501) }
    #expect(throws: TransferError.self) { try part.read(at: .max, count: .max) }
    #expect(throws: TransferError.self) { try part.read(at: 0, count: -1) }
    #expect(throws: TransferError.self) { try part.commit(verified: part.object.sha256) }
  }

  @Test("rewinding is lasting")
  func rewind() throws {
    let folder = TemporaryFolder()
    let object = try ReceivedObject(bytes)
    do {
      let part = try DirectoryStorage(path: folder.path).part(object)
      try part.receive(bytes.prefix(8000))
      try part.rewind(to: 100)
    }
    let part = try DirectoryStorage(path: folder.path).part(object)
    #expect(part.durableOffset == 100)
    _ = try part.finish(bytes)
  }

  @Test("the idle part that is oldest makes room for a new one, and one in use does not")
  func mostParts() throws {
    let folder = TemporaryFolder()
    let storage = try DirectoryStorage(path: folder.path, policy: .init(mostParts: 2))
    let used = try storage.part(ReceivedObject(pattern(10, seed: 1)))
    for seed in 2...5 as ClosedRange<UInt64> {
      try storage.part(ReceivedObject(pattern(10, seed: seed))).close()
    }
    #expect(folder.names.filter { $0.hasSuffix(".part") }.count == 2)
    #expect(folder.names.filter { $0.hasSuffix(".state") }.count == 2)
    _ = try used.finish(pattern(10, seed: 1))
  }

  @Test("an object that does not fit leaves nothing behind, and no part goes for it")
  func refusedForSpace() throws {
    let folder = TemporaryFolder()
    let storage = try DirectoryStorage(path: folder.path, policy: .init(largestObject: .max, mostParts: 2))
    for seed in 1...2 as ClosedRange<UInt64> {
      try storage.part(ReceivedObject(pattern(10, seed: seed))).close()
    }
    let names = folder.names
    let free = try storage.limits().freeSpace
    for number in 1...3 as ClosedRange<UInt8> {
      let object = try ReceivedObject(
        sha256: SHA256Hasher.digest(of: Data([number])), size: free + 1 << 40, name: "huge.bin")
      let error = #expect(throws: TransferError.self) { try storage.open(object) }
      #expect(error?.code == .diskFull)
    }
    #expect(folder.names == names)
  }

  @Test("what an outage leaves between two names is not written to any more")
  func twoNames() throws {
    let folder = TemporaryFolder()
    let object = try ReceivedObject(bytes)
    try DirectoryStorage(path: folder.path).part(object).receive(bytes)
    let name = try #require(folder.names.first { $0.hasSuffix(".part") })
    try FileManager.default.linkItem(atPath: folder.path(name), toPath: folder.path("fw.bin"))
    let storage = try DirectoryStorage(path: folder.path)
    let part = try storage.part(ReceivedObject(sha256: object.sha256, size: object.size, name: "second.bin"))
    #expect(part.durableOffset == 0)
    _ = try part.write(Data(count: 100), at: 0)
    #expect(folder.contents("fw.bin") == bytes)
    part.close()
    guard case .complete = try storage.open(object) else {
      Issue.record("the object is there and must be recognised")
      return
    }
    #expect(folder.names == [".bluehaul.lock", "fw.bin"])
  }

  @Test("an empty object is a file without bytes")
  func emptyObject() throws {
    let folder = TemporaryFolder()
    let part = try DirectoryStorage(path: folder.path).part(ReceivedObject(Data()))
    _ = try part.commit(verified: part.digest())
    #expect(folder.contents("fw.bin") == Data())
  }
}
