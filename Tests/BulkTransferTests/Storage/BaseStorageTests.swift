import Foundation
import Locking
import TestSupport
import Testing

@testable import BulkTransfer

@Suite("Bases in a folder")
struct BaseStorageTests {
  let old = pattern(30_000)

  func digest(_ bytes: Data) throws -> SHA256Digest { try SHA256Hasher.digest(of: bytes) }

  /// What a storage says to a search for these octets, with a proof that is held against them.
  func search(_ storage: any ReceiverStorage, _ contents: Data, size: UInt64? = nil) throws -> (
    any ByteSource
  )? {
    let identity = try BaseImage(of: MemorySource(contents), challenge: Array(1...8))
    let wanted = BaseRequest(
      sha256: identity.sha256, size: size ?? identity.size, challenge: identity.challenge)
    guard let found = try storage.base(wanted) else { return nil }
    #expect(found.proof == identity.proof)
    return found.source
  }

  @Test("A file is found by its contents, under whatever name")
  func found() throws {
    let folder = TemporaryFolder()
    try folder.write(pattern(30_001), "a.bin")
    var same = old
    same[100] ^= 1
    try folder.write(same, "b.bin")
    try folder.write(old, "c.bin")
    let storage = try DirectoryStorage(path: folder.path)
    let base = try #require(try search(storage, old))
    #expect(base.size == 30_000)
    #expect(try base.read(at: 10, count: 20_000) == old.dropFirst(10).prefix(20_000))
    #expect(throws: TransferError.self) { try base.read(at: 29_999, count: 2) }
    #expect(try search(storage, old, size: 30_001) == nil)
    #expect(try search(storage, pattern(5), size: 30_000) == nil)
  }

  @Test("Hidden files, links, folders and pipes are no bases, and none of them makes it wait")
  func others() throws {
    let folder = TemporaryFolder()
    try folder.write(old, ".hidden")
    let elsewhere = TemporaryFolder()
    try elsewhere.write(old, "x.bin")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link.bin"), withDestinationPath: elsewhere.path("x.bin"))
    try FileManager.default.createDirectory(atPath: folder.path("dir.bin"), withIntermediateDirectories: true)
    let pipe = unsafe mkfifo(folder.path("pipe.bin"), 0o600)
    #expect(pipe == 0)
    let storage = try DirectoryStorage(path: folder.path)
    #expect(try search(storage, old) == nil)
  }

  /// A folder with files of the base's size that are not it, each a minute older than the one before.
  private func crowd(_ count: Int) throws -> TemporaryFolder {
    let folder = TemporaryFolder()
    for number in 0..<count {
      var bytes = old
      bytes[0] = UInt8(number)
      bytes[1] ^= 0xFF
      try folder.write(bytes, "f\(100 + number)")
      try age("f\(100 + number)", minutes: number, in: folder)
    }
    return folder
  }

  private func age(_ name: String, minutes: Int, in folder: TemporaryFolder) throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000 - Double(minutes) * 60)],
      ofItemAtPath: folder.path(name))
  }

  private func wanted() throws -> BaseRequest {
    let identity = try BaseImage(of: MemorySource(old), challenge: Array(1...8))
    return BaseRequest(sha256: identity.sha256, size: identity.size, challenge: identity.challenge)
  }

  @Test("A base is found among many files of its size")
  func crowded() throws {
    let folder = try crowd(40)
    try folder.write(old, "z")
    try age("z", minutes: 60, in: folder)
    #expect(try search(try DirectoryStorage(path: folder.path), old) != nil)
  }

  @Test("The newest files are read first, and no more octets than the search may cost")
  func bounded() throws {
    let folder = try crowd(20)
    try folder.write(old, "z")
    let budget = 3 * DirectoryStorage.leastSearchCost
    try age("z", minutes: 4, in: folder)
    #expect(try DirectoryStorage(path: folder.path).base(try wanted(), budget: budget) == nil)
    try age("z", minutes: -1, in: folder)
    #expect(try DirectoryStorage(path: folder.path).base(try wanted(), budget: budget) != nil)
    #expect(DirectoryStorage.searchBudget(for: 1000) == 1 << 28)
    #expect(DirectoryStorage.searchBudget(for: 1 << 30) == 1 << 32)
    #expect(DirectoryStorage.searchBudget(for: .max) > 0)
  }

  @Test("What was read before says where to look first, and a file that was changed since is read anew")
  func known() throws {
    let folder = try crowd(5)
    try folder.write(old, "z")
    try age("z", minutes: 30, in: folder)
    let storage = try DirectoryStorage(path: folder.path)
    let least = DirectoryStorage.leastSearchCost
    #expect(try storage.base(try wanted(), budget: least) == nil)
    #expect(try search(storage, old) != nil)
    #expect(try storage.base(try wanted(), budget: least) != nil)
    // The same size and time of change: its contents decide.
    var other = old
    other[5] ^= 1
    let file = try #require(FileHandle(forWritingAtPath: folder.path("z")))
    try file.write(contentsOf: other)
    try file.close()
    try age("z", minutes: 30, in: folder)
    #expect(try search(storage, old) == nil)
  }

  @Test("An update replaces its own base once it is whole and verified, and not before")
  func replaced() throws {
    let folder = TemporaryFolder()
    try folder.write(old, "fw.bin")
    let new = old.prefix(9000) + Data("changed".utf8) + old.dropFirst(9000)
    let storage = try DirectoryStorage(path: folder.path, policy: .init(existingFile: .replace))
    let worker = StorageWorker(storage)
    func ask(_ operation: StorageRequest.Operation) -> StorageReport.Result? {
      worker.perform(StorageRequest(object: 1, operation: operation)).report?.result
    }
    let identity = try BaseImage(of: MemorySource(old), challenge: Array(1...8))
    let wanted = BaseRequest(sha256: identity.sha256, size: identity.size, challenge: identity.challenge)
    #expect(ask(.findBase(wanted)) == .base(proof: identity.proof))
    let object = ReceivedObject(sha256: try digest(Data(new)), size: UInt64(new.count), name: "fw.bin")
    #expect(ask(.open(object, discarding: false)) == .opened(durable: 0))
    var encoder = ZstdEncoder()
    for start in stride(from: 0, to: new.count, by: 16_384) {
      let segment = Data(new).dropFirst(start).prefix(16_384)
      let encoded = try encoder.encode(segment, prefix: old, level: 19)
      let coded = CodedSegment(
        frame: try #require(encoded), offset: UInt64(start), count: segment.count, basePower: 20)
      #expect(ask(.decode(coded)) == .wrote(through: UInt64(start + segment.count)))
      #expect(folder.contents("fw.bin") == old)
    }
    #expect(ask(.sync(through: object.size)) == .synced(through: object.size))
    #expect(ask(.readBack(at: 0, count: new.count)) == .hashed(object.sha256))
    #expect(folder.contents("fw.bin") == old)
    #expect(ask(.commit(object.sha256)) == .committed(location: folder.path("fw.bin")))
    #expect(folder.contents("fw.bin") == Data(new))
  }

  @Test("A base that is written to after its proof costs no octet: what does not decode is not stored")
  func overwritten() throws {
    let folder = TemporaryFolder()
    try folder.write(old, "fw.bin")
    let storage = try DirectoryStorage(path: folder.path)
    let worker = StorageWorker(storage)
    func ask(_ operation: StorageRequest.Operation) -> StorageReport.Result? {
      worker.perform(StorageRequest(object: 1, operation: operation)).report?.result
    }
    let identity = try BaseImage(of: MemorySource(old), challenge: Array(1...8))
    let wanted = BaseRequest(sha256: identity.sha256, size: identity.size, challenge: identity.challenge)
    #expect(ask(.findBase(wanted)) == .base(proof: identity.proof))
    var new = old
    new[77] ^= 1
    new[20_000] ^= 1
    let object = ReceivedObject(sha256: try digest(new), size: 30_000, name: "new.bin")
    #expect(ask(.open(object, discarding: false)) == .opened(durable: 0))
    var encoder = ZstdEncoder()
    func coded(_ start: Int) throws -> CodedSegment {
      let segment = new.dropFirst(start).prefix(8192)
      let range = UInt64(start)..<UInt64(start + segment.count)
      let window = BaseWindow.range(of: range, baseSize: 30_000, power: 14)
      let encoded = try encoder.encode(
        segment, prefix: old[Int(window.lowerBound)..<Int(window.upperBound)], level: 19)
      return CodedSegment(
        frame: try #require(encoded), offset: UInt64(start), count: segment.count, basePower: 14)
    }
    #expect(ask(.decode(try coded(0))) == .wrote(through: 8192))
    #expect(ask(.sync(through: 8192)) == .synced(through: 8192))
    let file = try #require(FileHandle(forWritingAtPath: folder.path("fw.bin")))
    try file.write(contentsOf: Data(pattern(30_000, seed: 9)))
    try file.close()
    guard case .failed(let error) = ask(.decode(try coded(16_384))) else {
      Issue.record("it was stored")
      return
    }
    #expect(error.code == .undecodable)
    #expect(ask(.close) == nil)
    #expect(ask(.open(object, discarding: false)) == .opened(durable: 8192))
  }

  /// A storage whose base fails to be read after it was proved.
  final class FailingBase: ReceiverStorage, ByteSource {
    private let flash = SimulatedFlash()
    private let reads = PosixMutex(0)
    let bytes: Data
    let good: Int

    init(_ bytes: Data, good: Int) {
      self.bytes = bytes
      self.good = good
    }

    var size: UInt64 { UInt64(bytes.count) }
    func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
      let number = reads.withLock { reads in
        reads += 1
        return reads
      }
      guard number <= good else { throw TransferError(.storage, "input/output error") }
      return bytes.dropFirst(Int(offset)).prefix(count)
    }
    func limits() throws(TransferError) -> StorageLimits { try flash.limits() }
    func open(_ object: ReceivedObject) throws(TransferError) -> StorageOpening { try flash.open(object) }
    func base(_ wanted: BaseRequest) throws(TransferError) -> ProvedBase? {
      try ProvedBase(self, answering: wanted)
    }
  }

  @Test("A base that cannot be read any more is no failure of the storage")
  func unreadable() throws {
    let worker = StorageWorker(FailingBase(old, good: 1))
    func ask(_ operation: StorageRequest.Operation) -> StorageReport.Result? {
      worker.perform(StorageRequest(object: 1, operation: operation)).report?.result
    }
    let identity = try BaseImage(of: MemorySource(old), challenge: Array(1...8))
    let wanted = BaseRequest(sha256: identity.sha256, size: identity.size, challenge: identity.challenge)
    #expect(ask(.findBase(wanted)) == .base(proof: identity.proof))
    let object = ReceivedObject(sha256: try digest(old), size: 30_000, name: "new.bin")
    #expect(ask(.open(object, discarding: false)) == .opened(durable: 0))
    var encoder = ZstdEncoder()
    // Other memory than the prefix's: where the two overlap the library does without the prefix.
    let encoded = try encoder.encode(pattern(30_000), prefix: old, level: 9)
    let frame = try #require(encoded)
    let answer = ask(.decode(CodedSegment(frame: frame, offset: 0, count: 30_000, basePower: 20)))
    guard case .failed(let error) = answer else {
      Issue.record("it was stored")
      return
    }
    #expect(error.code == .undecodable)
  }

  /// A storage that has every object, or takes none.
  final class SettledStorage: ReceiverStorage {
    let isRefusing: Bool
    private let bytes: Data
    private let given = PosixMutex<Weak>(Weak())

    struct Weak: Sendable { weak var source: MemorySource? }

    init(_ bytes: Data, isRefusing: Bool) {
      self.bytes = bytes
      self.isRefusing = isRefusing
    }

    /// Whether somebody holds the base that was found.
    var isHeld: Bool { given.withLock { $0.source != nil } }

    func limits() throws(TransferError) -> StorageLimits {
      StorageLimits(largestObject: 1 << 30, freeSpace: 1 << 30)
    }
    func open(_ object: ReceivedObject) throws(TransferError) -> StorageOpening {
      if isRefusing { throw TransferError(.nameTaken, "there is another") }
      return .complete(location: "here")
    }
    func base(_ wanted: BaseRequest) throws(TransferError) -> ProvedBase? {
      let source = MemorySource(bytes)
      given.withLock { $0.source = source }
      return try ProvedBase(source, answering: wanted)
    }
  }

  @Test("A base is let go of where nothing will be decoded", arguments: [false, true])
  func letGo(isRefusing: Bool) throws {
    let storage = SettledStorage(old, isRefusing: isRefusing)
    let worker = StorageWorker(storage)
    let found = worker.perform(StorageRequest(object: 1, operation: .findBase(try wanted())))
    guard case .base(.some) = found.report?.result else {
      Issue.record("the base was not found")
      return
    }
    #expect(storage.isHeld)
    let object = ReceivedObject(sha256: try digest(old), size: 30_000, name: "new.bin")
    _ = worker.perform(StorageRequest(object: 1, operation: .open(object, discarding: false)))
    #expect(!storage.isHeld)
  }
}
