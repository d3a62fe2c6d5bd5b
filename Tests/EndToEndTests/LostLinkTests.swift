import BulkTransfer
import Foundation
import Locking
import Testing
import VirtualRadio

@Suite("A push whose link does not come back, or takes nothing", .timeLimit(.minutes(30)))
struct LostLinkTests {
  private static let size = 100_000

  private static func options(_ choice: CarrierChoice, reconnects: Bool = true) -> PushOptions {
    var options = PushOptions(via: choice)
    options.link.connection.reconnects = reconnects
    return options
  }

  private static func world(_ words: String) throws -> World {
    try World(faults: try FaultPlan(parsing: words).resolved(totalBytes: size))
  }

  @Test(
    "where no link is made again, its end is the push's, at once",
    arguments: [CarrierChoice.gatt, .l2cap], ["hangup@40%", "drop@40%", "drop-in-frame@40%"])
  func lostForGood(choice: CarrierChoice, words: String) async throws {
    let world = try Self.world(words)
    let device = try await world.startDevice()
    let options = Self.options(choice, reconnects: false)
    // The last thing that a push does is to record where it stands; time stands still meanwhile.
    let end = PosixMutex(Duration.zero)
    let push = try world.push([image(Self.size)], options: options) { [clock = world.clock] _, _ in
      let now = clock.now
      end.withLock { $0 = now }
    }
    let (result, _) = await push.collect()
    let error = #expect(throws: TransferError.self) { try result.get() }
    #expect(error?.code == .disconnected && error?.isRetriable == true)
    let lost = try #require(world.sender.seen.disconnectedAt.first)
    let ended = end.withLock { $0 }
    #expect(ended >= lost && ended - lost < .seconds(1), "lost at \(lost), ended at \(ended)")
    #expect(world.sender.seen.connections == 1)
    let report = try await world.push([image(Self.size)], options: options).run()
    #expect(report.resumedFrom > 0)
    #expect(world.flash.contents(of: "image-0") == image(Self.size))
    try await device.stop()
  }

  @Test(
    "interrupted twice, it is completed by the third run of the same process",
    arguments: [CarrierChoice.gatt, .l2cap])
  func interruptedTwice(choice: CarrierChoice) async throws {
    let world = try Self.world("hangup@30%,hangup@60%")
    let device = try await world.startDevice()
    let options = Self.options(choice, reconnects: false)
    for _ in 1...2 {
      let (result, _) = await (try world.push([image(Self.size)], options: options)).collect()
      #expect(throws: TransferError.self) { try result.get() }
    }
    let report = try await world.push([image(Self.size)], options: options).run()
    #expect(report.resumedFrom > UInt64(Self.size) * 4 / 10)
    #expect(world.flash.contents(of: "image-0") == image(Self.size))
    try await device.stop()
  }

  @Test("a link that takes nothing at first delays the start and no more", arguments: [true, false])
  func startHold(isAnnounced: Bool) async throws {
    let world = try World()
    world.air.setStartHold(.seconds(2), isAnnounced: isAnnounced, of: world.phone)
    let device = try await world.startDevice()
    let contents = image(20_000)
    _ = try await world.push([contents], options: Self.options(.gatt)).run()
    let linked = try #require(world.sender.seen.connectedAt.first)
    let first = try #require(world.sender.seen.accepted.first)
    #expect(first.at - linked >= .seconds(2) && first.at - linked < .milliseconds(2500))
    #expect(world.flash.contents(of: "image-0") == contents)
    try await device.stop()
  }

  @Test("one that never takes anything is an error in time")
  func endlessHold() async throws {
    let world = try World()
    world.air.setStartHold(.seconds(3600), isAnnounced: false, of: world.phone)
    let device = try await world.startDevice()
    let (result, _) = await (try world.push([image(20_000)], options: Self.options(.gatt))).collect()
    let error = #expect(throws: TransferError.self) { try result.get() }
    #expect(error?.code == .timedOut, "\(error.map { "\($0)" } ?? "")")
    #expect(world.clock.now < .seconds(120))
    try await device.stop()
  }
}
