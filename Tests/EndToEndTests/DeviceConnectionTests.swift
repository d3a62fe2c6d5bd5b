import BulkTransfer
import CoreBluetooth
import Foundation
import Locking
import Radio
import Testing
import VirtualRadio

@Suite("The life of a connection to a device", .timeLimit(.minutes(30)))
struct DeviceConnectionTests {
  /// Does `work` at a moment of simulated time from now, which stands still until it is planned.
  private func plan(_ delay: Duration, in world: World, _ work: @escaping @Sendable () -> Void) {
    _ = world.clock.schedule(after: delay, work)
  }

  @Test("finds, connects, discovers, and ends on request")
  func wholeLife() async throws {
    let world = try World()
    let gadget = await Gadget.start("gadget", on: world.device)
    let journey = Journey(.name("gadget"), in: world)
    let states = journey.states(after: { $0.isUsable }, until: { $0 == .idle })
    let id = try await journey.connection.connect()
    #expect(try await journey.connection.connect() == id, "it is there already")
    #expect(try await journey.connection.withPeripheral { $0.identifier } == id)
    try await journey.command(Data([7]))
    _ = try await journey.connection.withPeripheral { $0.maximumWriteValueLength(for: .withResponse) }
    await journey.connection.disconnect()
    let error = await #expect(throws: TransferError.self) {
      try await journey.connection.withPeripheral { $0.identifier }
    }
    #expect(error?.code == .disconnected)
    let seen = await states.value
    #expect(seen.contains(.finding) && seen.contains(.ready(id)))
    gadget.stop()
  }

  @Test("a link that is lost is made again, over whatever time the device is away, with one request")
  func outOfReach() async throws {
    let world = try World(try LinkParameters(parsing: "timeout=2000"))
    let gadget = await Gadget.start("gadget", on: world.device)
    let journey = Journey(.name("gadget"), in: world)
    let id = try await journey.connection.connect()
    let air = world.air
    let device = world.device
    world.clock.beginActivity()
    let lost = journey.readyAgain()
    let start = world.clock.now
    plan(.seconds(1), in: world) { air.setInReach(false, of: device) }
    plan(.seconds(3600), in: world) { air.setInReach(true, of: device) }
    world.clock.endActivity()
    let states = await lost.value
    #expect(states.last == .ready(id))
    #expect(states.count { $0 == .connecting(id) } == 1)
    #expect(world.sender.seen.requests == 2)
    #expect(world.clock.now - start >= .seconds(3600))
    gadget.stop()
  }

  @Test(
    "an adapter that is switched off and on again is waited for",
    arguments: [AdapterState.poweredOff, .resetting])
  func power(state: AdapterState) async throws {
    let world = try World()
    let gadget = await Gadget.start("gadget", on: world.device)
    let journey = Journey(.name("gadget"), in: world)
    let id = try await journey.connection.connect()
    let (air, phone) = (world.air, world.phone)
    world.clock.beginActivity()
    let again = journey.readyAgain()
    plan(.milliseconds(200), in: world) { air.setPower(state, of: phone) }
    plan(.seconds(5), in: world) { air.setPower(.poweredOn, of: phone) }
    world.clock.endActivity()
    let states = await again.value
    #expect(states.contains(.waitingForRadio))
    #expect(states.last == .ready(id))
    gadget.stop()
  }

  @Test("a device that changes its database is discovered again on the same link")
  func modified() async throws {
    let world = try World()
    let gadget = await Gadget.start("gadget", on: world.device)
    let journey = Journey(.name("gadget"), in: world)
    let id = try await journey.connection.connect()
    world.clock.beginActivity()
    let again = journey.readyAgain()
    plan(.seconds(1), in: world) { gadget.changeServices() }
    world.clock.endActivity()
    let states = await again.value
    #expect(states.contains(.discoveringServices(id)))
    #expect(states.last == .ready(id))
    #expect(world.sender.seen.connections == 1)
    try await journey.command(Data([9]))
    gadget.stop()
  }

  // MARK: Ends of links

  @Test("requests that are pending when the link ends are never answered later, and the next link works")
  func pendingRequests() async throws {
    let world = try World(try LinkParameters(parsing: "timeout=2000"))
    let gadget = await Gadget.start("gadget", on: world.device)
    let journey = Journey(.name("gadget"), in: world)
    try await journey.connection.connect()
    gadget.setAnswers(false)
    let (air, device) = (world.air, world.device)
    world.clock.beginActivity()
    try await journey.connection.withPeripheral { peripheral in
      guard let command = peripheral.characteristic(Gadget.command),
        let event = peripheral.characteristic(Gadget.event)
      else { return }
      peripheral.writeValue(Data([1]), for: command, type: .withResponse)
      peripheral.readValue(for: command)
      peripheral.setNotifyValue(true, for: event)
      peripheral.discoverServices(nil)
    }
    let again = journey.readyAgain()
    plan(.seconds(1), in: world) { air.setInReach(false, of: device) }
    plan(.seconds(8), in: world) {
      gadget.setAnswers(true)
      air.setInReach(true, of: device)
    }
    world.clock.endActivity()
    _ = await again.value
    #expect(journey.takeEvents().isEmpty)
    let written = Task { await gadget.writes(atLeast: 2) }
    try await journey.command(Data([2]))
    #expect(await written.value.last == Data([2]))
    gadget.stop()
  }

  enum Reset: CaseIterable, Sendable {
    case answeredAndDisconnected, disconnected, answeredOnly
  }

  @Test(
    "a device that is told to start anew is connected to again, whatever it does first",
    arguments: Reset.allCases)
  func restart(reset: Reset) async throws {
    let world = try World(try LinkParameters(parsing: "timeout=2000"))
    let gadget = await Gadget.start("gadget", on: world.device)
    let journey = Journey(.name("gadget"), in: world) {
      $0.fruitlessAttempts = 1
      $0.stableTime = nil
    }
    let id = try await journey.connection.connect()
    let (air, device, clock) = (world.air, world.device, world.clock)
    gadget.setAnswers(reset != .disconnected)
    if reset != .answeredOnly {
      gadget.afterWrite {
        _ = clock.schedule(after: .milliseconds(reset == .disconnected ? 0 : 300)) {
          air.setPower(.resetting, of: device)
          _ = clock.schedule(after: .seconds(2)) { air.setPower(.poweredOn, of: device) }
        }
      }
    }
    world.clock.beginActivity()
    let start = world.clock.now
    let states = journey.states(after: { $0 == .restarting(id) }, until: { $0 == .ready(id) })
    await journey.connection.expectRestart(within: .seconds(10))
    try await journey.command(Data([0xDE]))
    world.clock.endActivity()
    #expect(await states.value.last == .ready(id))
    if reset == .answeredOnly { #expect(world.clock.now - start >= .seconds(10)) }
    #expect(world.sender.seen.connections == 2)
    gadget.stop()
  }

  @Test("cancelling the task gives the attempt up at any moment, and the device is free", arguments: 0..<8)
  func cancelled(step: Int) async throws {
    let world = try World()
    let gadget = await Gadget.start("gadget", on: world.device)
    let journey = Journey(.name("gadget"), in: world)
    world.clock.beginActivity()
    let attempt = Task { try await journey.connection.connect() }
    plan(.milliseconds(step * 90), in: world) { attempt.cancel() }
    world.clock.endActivity()
    switch await attempt.result {
    case .success: break
    case .failure(let error): #expect((error as? TransferError)?.code == .cancelled)
    }
    await journey.connection.disconnect()
    let next = Journey(.name("gadget"), in: world)
    try await next.connection.connect()
    gadget.stop()
  }

  @Test("a task that was cancelled before it began connects to nothing")
  func cancelledBefore() async throws {
    let world = try World()
    let journey = Journey(.name("gadget"), in: world)
    let gate = AsyncStream.makeStream(of: Void.self)
    let attempt = Task {
      for await _ in gate.stream { break }
      return try await journey.connection.connect()
    }
    attempt.cancel()
    gate.continuation.finish()
    let error = await #expect(throws: TransferError.self) { try await attempt.value }
    #expect(error?.code == .cancelled)
    #expect(world.sender.seen.requests == 0)
  }

  @Test("a channel to a PSM that is not there is answered with an error in time, and disturbs nothing")
  func wrongPSM() async throws {
    let world = try World()
    let gadget = await Gadget.start("gadget", on: world.device)
    let journey = Journey(.name("gadget"), in: world)
    try await journey.connection.connect()
    for psm in [CBL2CAPPSM(0), 0x00F1, 0x00F1] {
      // Time stands still until it is asked for.
      world.clock.beginActivity()
      let start = world.clock.now
      try await journey.connection.withPeripheral { $0.openL2CAPChannel(psm) }
      world.clock.endActivity()
      let event = try #require(await journey.nextEvent())
      #expect(event.line.hasPrefix("no channel"))
      #expect(event.at - start < .seconds(5))
    }
    try await journey.command()
    #expect(await journey.nextEvent()?.line == "written")
    gadget.stop()
  }

  @Test("a device that lacks a characteristic is refused by name")
  func unsupported() async throws {
    let world = try World()
    let gadget = await Gadget.start("gadget", on: world.device)
    let missing = CBUUID(string: "12345678-1234-1234-1234-123456789AFF")
    let journey = Journey(
      .name("gadget"), in: world,
      services: [ServiceRequirement(Gadget.service, name: "the gadget's service", characteristics: [missing])]
    )
    let error = await #expect(throws: TransferError.self) { try await journey.connection.connect() }
    #expect(error?.code == .unsupportedDevice)
    #expect(error?.message.contains(missing.uuidString) == true)
    #expect(world.sender.seen.connections == 2)
    gadget.stop()
  }
}
