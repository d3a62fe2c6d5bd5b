import BulkTransfer
import CoreBluetooth
import Foundation
import Radio
import Testing
import VirtualRadio

/// Commands that a radio cannot take are not given: each would be a line about a mistake of this program.
@Suite("What ends while there is no radio", .timeLimit(.minutes(30)))
struct RadiolessTests {
  static let states: [AdapterState] = [.poweredOff, .resetting, .unsupported]

  @Test("a push to which no adapter comes ends without a command", arguments: states)
  func push(state: AdapterState) async throws {
    let world = try World()
    world.air.setPower(state, of: world.phone)
    let error = await #expect(throws: TransferError.self) { try await world.push([image(1000)]).run() }
    #expect(error?.code == .radioUnavailable)
    #expect(world.misuse == [])
  }

  @Test(
    "a push whose adapter goes away in its course, and that is cancelled then, ends without a command",
    arguments: [CarrierChoice.gatt, .l2cap])
  func pushUnderWay(choice: CarrierChoice) async throws {
    let world = try World()
    let device = try await world.startDevice()
    let push = try world.push([image(400_000)], options: PushOptions(via: choice))
    world.clock.beginActivity()
    let task = world.start(push)
    let timers = [
      world.clock.schedule(after: .seconds(1)) { [air = world.air, phone = world.phone] in
        air.setPower(.poweredOff, of: phone)
      },
      world.clock.schedule(after: .milliseconds(1100)) { task.cancel() },
    ]
    world.clock.endActivity()
    #expect(await task.value.error?.code == .cancelled)
    for timer in timers { timer.cancel() }
    try await device.stop()
    #expect(world.misuse == [])
  }

  @Test("a receiver that is stopped while its adapter is away ends without a command", arguments: states)
  func receiver(state: AdapterState) async throws {
    let world = try World()
    let device = try await world.startDevice()
    world.air.setPower(state, of: world.device)
    await world.pass(.seconds(1))
    if state == .unsupported {
      await #expect(throws: TransferError.self) { try await device.stop() }
    } else {
      try await device.stop()
    }
    #expect(world.misuse == [])
  }

  @Test("a scan without an adapter says so, and ends without a command")
  func scan() async throws {
    let world = try World()
    world.air.setPower(.poweredOff, of: world.phone)
    let scan = DeviceScan(managerOptions: world.managerOptions(world.sender), clock: world.engineClock)
    let error = await #expect(throws: TransferError.self) {
      for try await _ in scan.sightings(for: .seconds(5)) {}
    }
    #expect(error?.code == .radioUnavailable)
    await world.pass(.seconds(1))
    #expect(world.misuse == [])
  }

  @Test("a device for link tests whose adapter was off offers its service once")
  func linkTestDevice() async throws {
    let world = try World()
    let device = try await world.startDevice()
    let tested = LinkTestDevice(managerOptions: world.managerOptions(world.device), clock: world.engineClock)
    let serving = await withCheckedContinuation { settled in
      let (started, start) = AsyncStream.makeStream(of: Void.self)
      let task = Task { try await tested.run { start.finish() } }
      Task {
        for await _ in started {}
        settled.resume(returning: task)
      }
    }
    for state in [AdapterState.poweredOff, .poweredOn] {
      world.air.setPower(state, of: world.device)
      await world.pass(.seconds(1))
    }
    let survey = SurveyOperation(
      of: .name(World.deviceName), managerOptions: world.managerOptions(world.sender),
      clock: world.engineClock)
    let found = try await survey.run().services.map(\.uuid)
    #expect(Set(found).count == found.count, "\(found)")
    world.air.setPower(.poweredOff, of: world.device)
    await world.pass(.seconds(1))
    serving.cancel()
    try await serving.value
    try await device.stop()
    #expect(world.misuse == [])
  }
}
