import BulkTransfer
import CoreBluetooth
import Foundation
import Locking
import Testing
import VirtualRadio

@Suite("A push that may be coded, over the simulated link", .timeLimit(.minutes(30)))
struct CodedPushTests {
  @Test(
    "asks for its base with a challenge of its own in each session",
    arguments: [CarrierChoice.gatt, .l2cap])
  func challenges(choice: CarrierChoice) async throws {
    let old = image(150_000)
    let new = old.prefix(50_000) + image(100_000, seed: 9)
    let world = try World(faults: try FaultPlan(parsing: "drop@30%,drop@70%").resolved(totalBytes: 100_000))
    try world.flash.install(old, as: "image.bin")
    let storage = AskedStorage(world.flash)
    let device = try await world.startDevice(storage: storage)
    let report = try await world.push(
      [new], coding: try coding(base: old), base: MemorySource(old), options: PushOptions(via: choice)
    ).run()
    #expect(world.flash.contents(of: "image-0") == new)
    #expect(report.sessions == 3)
    #expect(report.progress.coding == .changes)
    let challenges = storage.challenges
    #expect(challenges.count >= report.sessions)
    #expect(Set(challenges).count == challenges.count)
    try await device.stop()
  }

  @Test(
    "tells that the receiver cannot decode, or uses no bases, and arrives all the same",
    arguments: [CarrierChoice.gatt, .l2cap], [(false, false), (false, true), (true, true)])
  func plainReceiver(choice: CarrierChoice, case: (decodes: Bool, hasBase: Bool)) async throws {
    let old = image(60_000)
    let new = old.prefix(30_000) + Data(count: 30_000)
    let world = try World()
    try world.flash.install(old, as: "image.bin")
    let device = try await world.startDevice { options in
      options.session.decodes = `case`.decodes
      options.session.basePower = nil
    }
    let base = `case`.hasBase ? old : nil
    let report = try await world.push(
      [new], coding: try coding(base: base), base: base.map { MemorySource($0) },
      options: PushOptions(via: choice)
    ).run()
    #expect(world.flash.contents(of: "image-0") == new)
    #expect(report.progress.coding == (`case`.decodes ? .compressed : .uncoded))
    #expect(report.progress.codingShortfall == .notSupported)
    #expect(`case`.decodes ? report.progress.streamBytes < 40_000 : report.progress.streamBytes > 60_000)
    try await device.stop()
  }

  private func coding(base: Data?) throws -> ObjectCoding {
    let base = try base.map { try BaseImage(of: MemorySource($0), challenge: Array(1...8)) }
    return ObjectCoding(compresses: true, base: base)
  }
}

/// A storage that notes what is asked of the bases that it has.
private final class AskedStorage: ReceiverStorage {
  private let storage: any ReceiverStorage
  private let asked = PosixMutex([[UInt8]]())

  init(_ storage: any ReceiverStorage) { self.storage = storage }

  var challenges: [[UInt8]] { asked.withLock { $0 } }

  func limits() throws(TransferError) -> StorageLimits { try storage.limits() }

  func open(_ object: ReceivedObject) throws(TransferError) -> StorageOpening { try storage.open(object) }

  func base(_ wanted: BaseRequest) throws(TransferError) -> ProvedBase? {
    asked.withLock { $0.append(wanted.challenge) }
    return try storage.base(wanted)
  }
}
