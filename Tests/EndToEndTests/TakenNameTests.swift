import BulkTransfer
import CoreBluetooth
import Foundation
import TestSupport
import Testing
import VirtualRadio

/// Somebody puts another file into the receiver's folder while an object is on its way.
@Suite("A name that is taken meanwhile", .timeLimit(.minutes(20)))
struct TakenNameTests {
  /// A folder in which another file appears under the object's name right before that is given.
  private final class Storage: ReceiverStorage {
    let base: DirectoryStorage
    let folder: TemporaryFolder

    init(_ folder: TemporaryFolder) throws {
      base = try DirectoryStorage(path: folder.path)
      self.folder = folder
    }

    func limits() throws(TransferError) -> StorageLimits { try base.limits() }

    func open(_ object: ReceivedObject) throws(TransferError) -> StorageOpening {
      switch try base.open(object) {
      case .complete(let location): .complete(location: location)
      case .part(let part, let busy): .part(Part(part, folder), busy: busy)
      }
    }
  }

  private final class Part: ReceiverPart {
    let base: any ReceiverPart
    let folder: TemporaryFolder

    init(_ base: any ReceiverPart, _ folder: TemporaryFolder) {
      self.base = base
      self.folder = folder
    }

    var object: ReceivedObject { base.object }
    var durableOffset: UInt64 { base.durableOffset }
    func write(_ bytes: Data, at offset: UInt64) throws(TransferError) -> Duration {
      try base.write(bytes, at: offset)
    }
    func sync(through offset: UInt64) throws(TransferError) -> Duration { try base.sync(through: offset) }
    func rewind(to offset: UInt64) throws(TransferError) { try base.rewind(to: offset) }
    func read(at offset: UInt64, count: Int) throws(TransferError) -> Data {
      try base.read(at: offset, count: count)
    }
    func commit(verified digest: SHA256Digest) throws(TransferError) -> String {
      _ = try? folder.write(Data("other".utf8), object.name)
      return try base.commit(verified: digest)
    }
    func discard() throws(TransferError) { try base.discard() }
    func close() { base.close() }
  }

  @Test(
    "is a refusal in words; the other file and all received bytes stay, and nothing is sent twice",
    arguments: [CarrierChoice.gatt, .l2cap])
  func taken(choice: CarrierChoice) async throws {
    let world = try World()
    let folder = TemporaryFolder()
    let contents = image(60_000)
    func receiver(_ storage: any ReceiverStorage) async throws -> Device {
      try await Device(
        ReceiveOperation(
          into: storage, options: try ReceiveOptions(name: World.deviceName),
          managerOptions: [CBManagerOptionRadioKey: world.device], clock: world.engineClock))
    }
    let options = PushOptions(via: choice)

    var device = try await receiver(Storage(folder))
    let (result, _) = await (try world.push([contents], options: options)).collect()
    guard case .failure(let error) = result else {
      Issue.record("success without a name")
      return
    }
    #expect(error.code == .refused)
    #expect(!error.isRetriable)
    #expect(
      error.message
        == "the device has all of image-0 and cannot give it its name: another file named image-0 is there already"
    )
    try await device.stop()
    #expect(folder.contents("image-0") == Data("other".utf8))

    try FileManager.default.removeItem(atPath: folder.path("image-0"))
    device = try await receiver(try DirectoryStorage(path: folder.path))
    let report = try await world.push([contents], options: options).run()
    #expect(report.resumedFrom == UInt64(contents.count))
    #expect(folder.contents("image-0") == contents)
    try await device.stop()
  }
}
