import BulkTransfer
import Foundation
import Radio
import Testing
import VirtualRadio

@Suite("Which device is meant", .timeLimit(.minutes(30)))
struct DeviceNameTests {
  @Test("two devices of one name are told apart by a push instead of guessed")
  func ambiguous() async throws {
    let world = try World()
    let device = try await world.startDevice()
    let twin = await Gadget.start(World.deviceName, on: world.air.makeRadio(name: "twin"))
    let (result, events) = await (try world.push([image(1000)])).collect()
    let error = #expect(throws: TransferError.self) { try result.get() }
    #expect(error?.code == .ambiguousDevice)
    #expect(error?.message.components(separatedBy: "dBm").count == 3)
    #expect(events.allSatisfy { if case .connecting = $0 { false } else { true } })
    #expect(world.sender.seen.connections == 0)
    twin.stop()
    // With one of them gone the name is enough.
    _ = try await world.push([image(1000)]).run()
    try await device.stop()
  }

  @Test("the identifier says which of two devices is meant")
  func byIdentifier() async throws {
    let world = try World()
    let device = try await world.startDevice()
    let alone = Journey(.name(World.deviceName), in: world, services: [])
    let id = try await alone.connection.connect()
    await alone.connection.disconnect()
    let twin = await Gadget.start(World.deviceName, on: world.air.makeRadio(name: "twin"))
    let contents = image(1000)
    _ = try await world.push([contents], target: .identifier(id)).run()
    #expect(world.flash.contents(of: "image-0") == contents)
    twin.stop()
    try await device.stop()
  }

  @Test("a name costs the settle time once, and an identifier nothing")
  func cost() async throws {
    func connectedAt(_ settle: Duration) async throws -> [Duration] {
      let world = try World(faults: try FaultPlan(parsing: "hangup@50%").resolved(totalBytes: 100_000))
      let device = try await world.startDevice()
      var options = PushOptions()
      options.link.connection.settleTime = settle
      _ = try await world.push([image(100_000)], options: options, settleTime: nil).run()
      try await device.stop()
      return world.sender.seen.connectedAt
    }
    let quick = try await connectedAt(.zero)
    let settleTime = ConnectionConfiguration().settleTime
    let careful = try await connectedAt(settleTime)
    #expect(quick.count == 2 && careful.count == 2)
    let cost = careful[0] - quick[0]
    // Advertising comes every 100 to 110 ms.
    #expect(cost > settleTime - .milliseconds(50) && cost < settleTime + .milliseconds(120), "\(cost)")
    // Once: connecting again costs none.
    #expect((careful[1] - careful[0]) - (quick[1] - quick[0]) < .milliseconds(120))
  }
}
