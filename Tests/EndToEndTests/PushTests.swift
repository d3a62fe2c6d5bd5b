import BulkTransfer
import Foundation
import Radio
import Testing
import VirtualRadio

@Suite("A push over the simulated link", .timeLimit(.minutes(30)))
struct PushTests {
  @Test(
    "arrives byte for byte, whatever the size",
    arguments: [CarrierChoice.gatt, .l2cap], [1, 19, 20, 243, 244, 245, 4095, 4096, 4097, 65_537])
  func sizes(choice: CarrierChoice, size: Int) async throws {
    let world = try World()
    let device = try await world.startDevice()
    let contents = image(size)
    let report = try await world.push([contents], options: PushOptions(via: choice)).run()
    #expect(world.flash.contents(of: "image-0") == contents)
    #expect(report.carrier.rawValue == choice.rawValue)
    #expect(report.progress.phase == .done)
    try await device.stop()
  }

  @Test("comes close to the link's ceiling", arguments: [CarrierChoice.gatt, .l2cap])
  func goodput(choice: CarrierChoice) async throws {
    let link = try LinkParameters(parsing: "phy=2M,mtu=247,dle=251,interval=30")
    let world = try World(link)
    let device = try await world.startDevice()
    let contents = image(1 << 20)
    let report = try await world.push([contents], options: PushOptions(via: choice)).run()
    // As the air saw it: from the first packet of the data stream to the last word of the device, which is that everything was verified.
    let seen = world.sender.seen
    let (began, ended) =
      choice == .gatt
      ? (seen.accepted.first?.at, seen.notifiedAt.last)
      : (seen.channelWrites.first { $0.count >= 1024 }?.at, seen.channelReads.last?.at)
    let rate = Double(contents.count) / ((try #require(ended) - #require(began)) / .seconds(1))
    // And as the engine tells it.
    let told = try #require(report.progress.averageBytesPerSecond)
    #expect(abs(told / rate - 1) < 0.02, "\(told) was told, \(rate) bytes/s were seen")
    let ceiling =
      choice == .gatt
      ? LinkCeiling(link).writesWithoutResponse().sustained : LinkCeiling(link).channel(sdu: 65535).sustained
    #expect(rate >= 0.97 * ceiling, "\(rate) of \(ceiling) bytes/s")
    #expect(rate <= ceiling, "\(rate) of \(ceiling) bytes/s")
    try await device.stop()
  }
}
