import BulkTransfer
import Foundation
import Radio
import TestSupport
import Testing
import VirtualRadio

/// What a push does on the link, as the radio sees it.
@Suite("The traffic of a push", .timeLimit(.minutes(30)))
struct TrafficTests {
  private static func gatt(_ change: (inout HaulConfiguration) -> Void = { _ in }) -> PushOptions {
    var options = PushOptions(via: .gatt)
    change(&options.haul)
    return options
  }

  @Test("follows an ATT MTU that grows after connecting", arguments: [0, 50, 500, 2000], 1...Sweep.count(13))
  func growingMTU(delay: Int, round: Int) async throws {
    let link = try LinkParameters(parsing: "phy=2M,mtu=247,dle=251,interval=15,mtu-delay=\(delay)")
    let world = try World(link, seed: UInt64(round))
    let device = try await world.startDevice()
    let contents = image(100_000, seed: UInt64(round))
    _ = try await world.push([contents], options: Self.gatt()).run()
    #expect(world.flash.contents(of: "image-0") == contents)
    let writes = world.sender.seen.accepted
    #expect(writes.allSatisfy { $0.count <= $0.attMTU - 3 })
    #expect(!world.sender.seen.writes.contains { if case .tooLong = $0.outcome { true } else { false } })
    if delay == 2000 { #expect(writes.first?.attMTU == 23) }
    // After the change every packet is full but for the last one and SYNC.
    let after = writes.drop { $0.attMTU == 23 }
    #expect(after.dropLast().count { $0.count != 244 } <= 1)
    #expect(after.count > 100)
    try await device.stop()
  }

  @Test("nothing is ever longer than the limit of its moment", arguments: [23, 50, 185, 247, 517])
  func limits(mtu: Int) async throws {
    let world = try World(try LinkParameters(parsing: "mtu=\(mtu)"))
    let device = try await world.startDevice()
    let contents = image(30_000)
    _ = try await world.push([contents], options: Self.gatt()).run()
    #expect(world.flash.contents(of: "image-0") == contents)
    let seen = world.sender.seen
    #expect(seen.accepted.allSatisfy { $0.count <= min(mtu - 3, 512) })
    #expect(seen.accepted.contains { $0.count == min(mtu - 3, 512) })
    #expect(!seen.writes.contains { if case .tooLong = $0.outcome { true } else { false } })
    try await device.stop()
  }

  @Test("the packet limit shows in every packet", arguments: [20, 64, 100, 244])
  func packetLimit(limit: Int) async throws {
    let world = try World()
    let device = try await world.startDevice()
    _ = try await world.push([image(20_000)], options: Self.gatt { $0.packetLimit = limit }).run()
    #expect(world.sender.seen.accepted.map(\.count).max() == limit)
    try await device.stop()
  }

  @Test("the receipt interval shows in the receipts", arguments: [1024, 4096, 16384])
  func receipts(interval: Int) async throws {
    let size = 200_000
    let world = try World()
    // Receipts for other reasons are kept out: nothing becomes durable before the end.
    let device = try await world.startDevice {
      $0.session.syncInterval = .seconds(100)
      $0.session.receiptAge = .seconds(100)
    }
    _ = try await world.push([image(size)], options: Self.gatt { $0.receiptInterval = interval }).run()
    let expected = size / interval
    let count = world.sender.seen.notifications.count
    #expect(count >= expected && count <= expected + expected / 4 + 12, "\(count) for \(expected)")
    try await device.stop()
  }

  @Test("the largest window bounds what is in flight", arguments: [8192, 16384])
  func window(limit: Int) async throws {
    // At a long interval a small window shows: a window an interval, or two where receipts come within it.
    let world = try World(try LinkParameters(parsing: "phy=2M,mtu=247,dle=251,interval=400"))
    let device = try await world.startDevice()
    let options = Self.gatt {
      $0.maximumWindow = limit
      $0.initialWindow = limit
      $0.minimumWindow = limit
    }
    _ = try await world.push([image(150_000)], options: options).run()
    var burst = 0
    var most = 0
    var last = Duration.zero
    for write in world.sender.seen.accepted {
      burst = write.at - last < .milliseconds(1) ? burst + write.count : write.count
      most = max(most, burst)
      last = write.at
    }
    #expect(most <= limit + 24, "\(most) at once")
    #expect(most > limit / 2)
    try await device.stop()
  }

  @Test(
    "the carrier is the one that was wanted",
    arguments: [(CarrierChoice.gatt, 0), (.l2cap, 1), (.automatic, 1)])
  func carrier(choice: CarrierChoice, channels: Int) async throws {
    let world = try World()
    let device = try await world.startDevice()
    let options = PushOptions(via: choice)
    _ = try await world.push([image(5000)], options: options).run()
    #expect(world.sender.seen.channels == channels)
    #expect(world.sender.seen.accepted.isEmpty == (channels == 1))
    try await device.stop()
  }

  @Test("without a channel at the device, automatic choice goes over GATT and L2CAP is refused in words")
  func withoutChannel() async throws {
    let world = try World()
    let device = try await world.startDevice(offersChannel: false)
    let report = try await world.push([image(5000)]).run()
    #expect(report.carrier == .gatt)
    let options = PushOptions(via: .l2cap)
    let (result, _) = await (try world.push([image(5000)], options: options)).collect()
    #expect(throws: TransferError.self) { try result.get() }
    if case .failure(let error) = result { #expect(error.code == .unsupportedDevice) }
    try await device.stop()
  }

  @Test(
    "the rate is what the device receives, not what a queue takes", arguments: [CarrierChoice.gatt, .l2cap])
  func honestRate(choice: CarrierChoice) async throws {
    // One packet in each interval of 25 ms: about 10 kB/s of air behind a queue of 64 kB.
    let link = try LinkParameters(parsing: "phy=2M,mtu=247,dle=251,interval=25,packets=1,queue=260")
    let world = try World(link)
    let device = try await world.startDevice()
    let options = PushOptions(via: choice)
    let (result, events) = await (try world.push([image(100_000)], options: options)).collect()
    let ceiling = LinkCeiling(link).writesWithoutResponse().sustained
    let average = try #require(try result.get().progress.averageBytesPerSecond)
    #expect(abs(average - ceiling) <= 0.1 * ceiling, "\(average) of \(ceiling) bytes/s")
    for case .progress(let state) in events where state.phase == .transfer && state.receivedBytes > 30_000 {
      if let rate = state.bytesPerSecond { #expect(rate <= 1.1 * ceiling, "\(rate) of \(ceiling) bytes/s") }
    }
    try await device.stop()
  }

  @Test(
    "progress starts low, never falls, and is complete once, after verification",
    arguments: [CarrierChoice.gatt, .l2cap])
  func progress(choice: CarrierChoice) async throws {
    let world = try World()
    let device = try await world.startDevice()
    var options = PushOptions(via: choice)
    options.progressInterval = .zero
    let (result, events) = await (try world.push([image(300_000)], options: options)).collect()
    #expect(throws: Never.self) { try result.get() }
    let fractions = events.compactMap { if case .progress(let state) = $0 { state.fraction } else { nil } }
    #expect(try #require(fractions.first) <= 0.01)
    #expect(fractions == fractions.sorted())
    #expect(fractions.count { $0 == 1 } == 1)
    let verified = try #require(events.firstIndex { if case .verified = $0 { true } else { false } })
    let complete = events.firstIndex {
      if case .progress(let state) = $0 { state.fraction == 1 } else { false }
    }
    #expect(try #require(complete) > verified)
    try await device.stop()
  }

  @Test(
    "more peers than are served at a time, which connect and say nothing, keep nobody away",
    arguments: [CarrierChoice.gatt, .l2cap])
  func lurkers(choice: CarrierChoice) async throws {
    let world = try World()
    let device = try await world.startDevice()
    var lurkers: [Lurker] = []
    for number in 1...20 {
      let radio = world.air.makeRadio(name: "lurker-\(number)")
      lurkers.append(await Lurker.start("lurker-\(number)", on: radio))
    }
    let options = PushOptions(via: choice)
    let contents = image(10_000)
    // Twice: the second one finds the places full again.
    for _ in 1...2 { _ = try await world.push([contents], options: options).run() }
    #expect(world.flash.contents(of: "image-0") == contents)
    for lurker in lurkers { lurker.stop() }
    try await device.stop()
  }
}
