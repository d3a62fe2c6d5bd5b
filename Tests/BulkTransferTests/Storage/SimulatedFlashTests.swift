import Foundation
import Testing

@testable import BulkTransfer

/// Bytes that differ at every place near each other, the same on every run.
func pattern(_ count: Int, seed: UInt64 = 1) -> Data {
  var state = seed &* 0x9E37_79B9_7F4A_7C15
  var bytes = Data(capacity: count)
  for _ in 0..<count {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    bytes.append(UInt8(truncatingIfNeeded: state >> 56))
  }
  return bytes
}

extension ReceivedObject {
  /// The object whose contents are `bytes`.
  init(_ bytes: Data, name: String = "fw.bin") throws {
    self.init(sha256: try SHA256Hasher.digest(of: bytes), size: UInt64(bytes.count), name: name)
  }
}

extension ReceiverStorage {
  /// Opens and expects something left to receive.
  func part(_ object: ReceivedObject) throws -> any ReceiverPart {
    guard case .part(let part, _) = try open(object) else {
      throw TransferError(.invalidArgument, "\(object.name) is complete already")
    }
    return part
  }
}

@Suite("Simulated flash")
struct SimulatedFlashTests {
  @Test("stores, reads back, verifies and finishes an object")
  func wholeObject() throws {
    let flash = SimulatedFlash()
    let bytes = pattern(10_000)
    let object = try ReceivedObject(bytes)
    let part = try flash.part(object)
    for start in stride(from: 0, to: bytes.count, by: 1000) {
      _ = try part.write(bytes[start..<start + 1000], at: UInt64(start))
    }
    _ = try part.sync(through: 10_000)
    #expect(flash.contents(of: "fw.bin") == nil)
    #expect(try part.commit(verified: part.digest(blockSize: 777)) == "fw.bin")
    #expect(flash.contents(of: "fw.bin") == bytes)
    guard case .complete("fw.bin") = try flash.open(object) else {
      Issue.record("a finished object is to be recognised")
      return
    }
  }

  @Test("keeps only what was synced over a power cut, and goes on from there", arguments: [0, 1, 4096, 5000])
  func powerCut(synced: Int) throws {
    let flash = SimulatedFlash()
    let bytes = pattern(8000)
    let object = try ReceivedObject(bytes)
    let part = try flash.part(object)
    _ = try part.write(bytes.prefix(6000), at: 0)
    _ = try part.sync(through: UInt64(synced))
    flash.powerCut()
    #expect(throws: TransferError.self) { try part.write(Data([1]), at: 7000) }

    let again = try flash.part(object)
    #expect(again.durableOffset == UInt64(synced))
    #expect(try again.read(at: 0, count: synced) == bytes.prefix(synced))
    #expect(try again.read(at: UInt64(synced), count: 100) == Data(repeating: 0xFF, count: 100))
    _ = try again.write(bytes.dropFirst(synced), at: UInt64(synced))
    _ = try again.sync(through: 8000)
    #expect(try again.digest() == object.sha256)
  }

  @Test("a byte that is damaged after it was stored shows in the whole hash, and the object is not finished")
  func damageBelowTheResumeOffset() throws {
    let flash = SimulatedFlash()
    let bytes = pattern(40_000)
    let object = try ReceivedObject(bytes)
    let part = try flash.part(object)
    _ = try part.write(bytes.prefix(20_000), at: 0)
    _ = try part.sync(through: 20_000)
    part.close()
    #expect(flash.corrupt(object.sha256, at: 100))

    let resumed = try flash.part(object)
    #expect(resumed.durableOffset == 20_000)
    _ = try resumed.write(bytes.dropFirst(20_000), at: 20_000)
    _ = try resumed.sync(through: 40_000)
    let digest = try resumed.digest()
    let error = #expect(throws: TransferError.self) { try resumed.commit(verified: digest) }
    #expect(error?.code == .verificationFailed)
    #expect(flash.names.isEmpty)
  }

  @Test("an object is not finished while bytes are missing")
  func incomplete() throws {
    let flash = SimulatedFlash()
    let bytes = pattern(100)
    let object = try ReceivedObject(bytes)
    let part = try flash.part(object)
    _ = try part.write(bytes, at: 0)
    _ = try part.sync(through: 99)
    #expect(throws: TransferError.self) { try part.commit(verified: object.sha256) }
  }

  @Test("reports the time of erasing each sector once and of programming each byte")
  func times() throws {
    let flash = SimulatedFlash(
      profile: .init(
        sectorSize: 4096, eraseTime: .milliseconds(85), writeRate: 100_000, syncTime: .milliseconds(1)))
    let part = try flash.part(ReceivedObject(pattern(10_000)))
    #expect(try part.write(pattern(1000), at: 0) == .milliseconds(95))
    #expect(try part.write(pattern(1000), at: 1000) == .milliseconds(10))
    #expect(try part.write(pattern(8000), at: 2000) == .milliseconds(85 * 2 + 80))
    #expect(try part.sync(through: 10_000) == .milliseconds(1))
  }

  @Test("erases everything at once when it is opened, if so built")
  func eraseAtOpen() throws {
    let flash = SimulatedFlash(
      profile: .init(sectorSize: 4096, eraseTime: .milliseconds(85), erasesAtOpen: true))
    guard case .part(let part, let busy) = try flash.open(ReceivedObject(pattern(10_000))) else {
      Issue.record("nothing is stored yet")
      return
    }
    #expect(busy == .milliseconds(255))
    #expect(try part.write(pattern(10_000), at: 0) == .zero)
  }

  @Test("programmed faults: a byte stored wrong once, a write that fails once")
  func programmedFaults() throws {
    let flash = SimulatedFlash()
    let bytes = pattern(1000)
    let part = try flash.part(ReceivedObject(bytes))
    flash.corruptWrites(at: 500)
    _ = try part.write(bytes, at: 0)
    var wrong = bytes
    wrong[500] ^= 0xFF
    #expect(try part.read(at: 0, count: 1000) == wrong)
    flash.failWrites(at: 10)
    #expect(throws: TransferError.self) { try part.write(bytes, at: 0) }
    _ = try part.write(bytes, at: 0)
    #expect(try part.read(at: 0, count: 1000) == bytes)
  }

  @Test("ranges that a peer could make up are errors")
  func ranges() throws {
    let flash = SimulatedFlash()
    let part = try flash.part(ReceivedObject(pattern(1000)))
    _ = try part.write(pattern(500), at: 0)
    _ = try part.sync(through: 500)
    #expect(throws: TransferError.self) { try part.write(pattern(1), at: 499) }
    #expect(throws: TransferError.self) { try part.write(pattern(501), at: 500) }
    #expect(throws: TransferError.self) { try part.write(pattern(1), at: .max) }
    #expect(throws: TransferError.self) { try part.sync(through: 499) }
    #expect(throws: TransferError.self) { try part.sync(through: 501) }
    #expect(throws: TransferError.self) { try part.rewind(to: 501) }
    #expect(throws: TransferError.self) { try part.read(at: 1000, count: 1) }
    #expect(throws: TransferError.self) { try part.read(at: .max, count: .max) }
    #expect(throws: TransferError.self) { try part.read(at: 0, count: -1) }
  }

  @Test("a part has one owner until it is closed")
  func oneOwner() throws {
    let flash = SimulatedFlash()
    let object = try ReceivedObject(pattern(1000))
    let part = try flash.part(object)
    let error = #expect(throws: TransferError.self) { try flash.open(object) }
    #expect(error?.code == .locked)
    part.close()
    let second = try flash.part(object)
    #expect(throws: TransferError.self) { try part.write(Data([0]), at: 0) }
    _ = try second.write(Data([0]), at: 0)
  }

  @Test("what does not fit is refused, before the first byte and with both numbers")
  func capacity() throws {
    let flash = SimulatedFlash(profile: .init(capacity: 1000))
    #expect(try flash.limits() == StorageLimits(largestObject: 1000, freeSpace: 1000))
    let error = #expect(throws: TransferError.self) { try flash.open(ReceivedObject(pattern(1001))) }
    #expect(error?.code == .objectTooLarge)
    #expect(error?.message.contains("1001") == true && error?.message.contains("1000") == true)

    let bytes = pattern(600)
    let part = try flash.part(ReceivedObject(bytes))
    _ = try part.write(bytes, at: 0)
    _ = try part.sync(through: 600)
    _ = try part.commit(verified: part.digest())
    #expect(try flash.limits().freeSpace == 400)
    let full = #expect(throws: TransferError.self) { try flash.open(ReceivedObject(pattern(401), name: "b")) }
    #expect(full?.code == .diskFull)
  }

  @Test("an abandoned part makes room for a new object")
  func eviction() throws {
    let flash = SimulatedFlash(profile: .init(capacity: 1000))
    let first = try ReceivedObject(pattern(800))
    let part = try flash.part(first)
    _ = try part.write(pattern(800), at: 0)
    _ = try part.sync(through: 800)
    part.close()
    let second = try ReceivedObject(pattern(900, seed: 2))
    _ = try flash.part(second)
    #expect(flash.durableOffset(of: first.sha256) == nil)
  }

  @Test("rewinding lowers the durable offset, so that a bad segment can be sent again")
  func rewind() throws {
    let flash = SimulatedFlash()
    let bytes = pattern(1000)
    let part = try flash.part(ReceivedObject(bytes))
    _ = try part.write(bytes, at: 0)
    _ = try part.sync(through: 1000)
    try part.rewind(to: 256)
    #expect(part.durableOffset == 256)
    _ = try part.write(bytes[256..<512], at: 256)
  }
}
