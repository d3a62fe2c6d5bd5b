import BulkTransfer
import CoreBluetooth
import Locking
import Foundation
import Radio
import TestSupport
import Testing
import VirtualRadio

@Suite("Adapters, peers and receivers that come and go", .timeLimit(.minutes(30)))
struct InterruptionTests {
  enum Side: Sendable { case sender, device }

  @Test(
    "an adapter that is switched off and on again delays a push and no more",
    arguments: [CarrierChoice.gatt, .l2cap], [Side.sender, .device])
  func power(choice: CarrierChoice, side: Side) async throws {
    for state in [AdapterState.poweredOff, .resetting] {
      for delay in Sweep.part(of: [Duration.milliseconds(150), .milliseconds(600)]) {
        let world = try World()
        let device = try await world.startDevice()
        let contents = image(120_000)
        let radio = side == .sender ? world.phone : world.device
        let (air, clock) = (world.air, world.clock)
        let back = PosixMutex([ScheduledWork]())
        let outcome = await world.run(
          try world.push([contents], options: PushOptions(via: choice)), after: delay
        ) {
          air.setPower(state, of: radio)
          let work = clock.schedule(after: .seconds(2)) { air.setPower(.poweredOn, of: radio) }
          back.withLock { $0.append(work) }
        }
        #expect(throws: Never.self, "\(state) at \(delay)") { try outcome.result.get() }
        #expect(world.flash.contents(of: "image-0") == contents)
        try await device.stop()
      }
    }
  }

  @Test(
    "a link that ends while the carrier is being made is made again, also where L2CAP is demanded",
    arguments: [CarrierChoice.gatt, .l2cap])
  func endWhileLinking(choice: CarrierChoice) async throws {
    for time in stride(from: choice == .gatt ? 200 : 400, through: 5000, by: Sweep.stride(400)) {
      let world = try World(
        try LinkParameters(parsing: "interval=200"), faults: try FaultPlan(parsing: "hangup@\(time)ms"))
      let device = try await world.startDevice()
      let (result, _) = await (try world.push([image(2000)], options: PushOptions(via: choice))).collect()
      #expect(throws: Never.self, "ended after \(time) ms") { try result.get() }
      try await device.stop()
    }
  }

  @Test("a channel that opens when GATT has taken over is closed, and disturbs nothing")
  func lateChannel() async throws {
    let world = try World(try LinkParameters(parsing: "phy=1M,mtu=247,interval=30"))
    world.sender.holdChannels(for: .milliseconds(10_800))
    let device = try await world.startDevice()
    let contents = image(300_000)
    let report = try await world.push([contents]).run()
    #expect(report.carrier == .gatt)
    #expect(report.sessions == 1)
    #expect(world.flash.contents(of: "image-0") == contents)
    try await device.stop()
  }

  @Test(
    "a channel that ends alone under a push costs a session and no more",
    arguments: [Duration.milliseconds(1500), .seconds(2), .seconds(3)])
  func closedChannel(delay: Duration) async throws {
    let world = try World()
    let device = try await world.startDevice()
    let contents = image(400_000)
    let outcome = await world.run(
      try world.push([contents], options: PushOptions(via: .l2cap)), after: delay
    ) { world.sender.closeChannels() }
    let report = try outcome.result.get()
    #expect(report.sessions == 2 && report.carrier == .l2cap)
    let starts = outcome.events.compactMap {
      if case .accepted(_, _, let durable, _) = $0 { durable } else { nil }
    }
    #expect(starts.count == 2 && starts.last.map { $0 > 0 } == true, "\(starts)")
    #expect(world.flash.contents(of: "image-0") == contents)
    #expect(world.clock.now < .seconds(60))
    try await device.stop()
  }

  @Test("a receiver that is stopped while its medium works ends when that is done")
  func stopWhileBusy() async throws {
    let world = try World(flash: SimulatedFlash.Profile(syncTime: .seconds(3)))
    let device = try await world.startDevice()
    let contents = image(400_000)
    var options = PushOptions(via: .gatt)
    options.link.connection.reconnects = false
    let outcome = await world.run(try world.push([contents], options: options), after: .seconds(2)) {
      device.cancel()
    }
    #expect(outcome.error?.code == .disconnected)
    try await device.end()
    let durable = try #require(world.flash.durableOffset(of: try SHA256Hasher.digest(of: contents)))
    #expect(durable > 50_000)
  }

  @Test(
    "a sender that is back before the device's medium has finished waits for it",
    arguments: [CarrierChoice.gatt, .l2cap])
  func backWhileBusy(choice: CarrierChoice) async throws {
    let faults = try FaultPlan(parsing: "hangup@40%").resolved(totalBytes: 100_000)
    let world = try World(faults: faults, flash: SimulatedFlash.Profile(syncTime: .seconds(15)))
    let device = try await world.startDevice()
    let contents = image(100_000)
    let report = try await world.push([contents], options: PushOptions(via: choice)).run()
    #expect(report.sessions == 2)
    #expect(world.flash.contents(of: "image-0") == contents)
    try await device.stop()
  }

  @Test("a receiver that serves one sender waits for all of its objects, over as many links as that takes")
  func onceOverTwoLinks() async throws {
    let world = try World(faults: try FaultPlan(parsing: "hangup@100000"))
    let device = try await world.startDevice { $0.once = true }
    let contents = [image(60_000), image(120_000, seed: 8), image(300, seed: 9)]
    let (result, _) = await (try world.push(contents)).collect()
    #expect(throws: Never.self) { try result.get() }
    for (index, bytes) in contents.enumerated() {
      #expect(world.flash.contents(of: "image-\(index)") == bytes)
    }
    try await device.end()
  }

  @Test("a receiver that serves one sender ends also where it has had everything before")
  func onceKnown() async throws {
    let world = try World()
    let first = try await world.startDevice()
    _ = try await world.push([image(5000)]).run()
    try await first.stop()
    let device = try await world.startDevice { $0.once = true }
    _ = try await world.push([image(5000)]).run()
    try await device.end()
  }

  // MARK: Two senders

  @Test("a second sender is refused in words, as often as it may try, and the first goes on")
  func refused() async throws {
    let world = try World(try LinkParameters(parsing: "phy=2M,mtu=247,dle=251,interval=100,packets=4"))
    let device = try await world.startDevice()
    let contents = image(300_000)
    var options = PushOptions(via: .gatt)
    options.link.connection.fruitlessAttempts = 3
    let second = try world.push([image(1000)], options: options, by: world.air.makeRadio(name: "second"))
    let late = PosixMutex<Task<PushOutcome, Never>?>(nil)
    let outcome = await world.run(
      try world.push([contents], options: PushOptions(via: .gatt)), after: .seconds(5)
    ) { late.withLock { $0 = world.start(second) } }
    #expect(throws: Never.self) { try outcome.result.get() }
    #expect(outcome.events.count { if case .connecting = $0 { true } else { false } } == 1)
    let refused = try #require(await late.withLock { $0 }?.value)
    #expect(refused.error?.code == .refused)
    #expect(refused.error?.message.contains("another sender") == true)
    let secondEvents = refused.events
    // The end of a link that was given up is not another failure.
    #expect(secondEvents.count { if case .connecting = $0 { true } else { false } } == 3)
    #expect(secondEvents.count { if case .declined = $0 { true } else { false } } == 3)
    #expect(!secondEvents.contains { if case .linkLost = $0 { true } else { false } })
    try await device.stop()
  }

  @Test("a second sender gets its turn when the first has ended", arguments: [CarrierChoice.gatt, .l2cap])
  func turns(choice: CarrierChoice) async throws {
    let world = try World()
    let device = try await world.startDevice()
    let second = try world.push(
      [image(1000, seed: 3)], options: PushOptions(via: choice), by: world.air.makeRadio(name: "second"))
    let late = PosixMutex<Task<PushOutcome, Never>?>(nil)
    let outcome = await world.run(
      try world.push([image(400_000)], options: PushOptions(via: choice)), after: .seconds(1)
    ) { late.withLock { $0 = world.start(second) } }
    #expect(throws: Never.self) { try outcome.result.get() }
    let turn = try #require(await late.withLock { $0 }?.value)
    #expect(throws: Never.self) { try turn.result.get() }
    try await device.stop()
  }

  // MARK: Operations

  @Test("many small objects do not make the journal slow the air down")
  func journalPace() async throws {
    let world = try World()
    let device = try await world.startDevice()
    let records = PosixMutex(0)
    var objects: [PushObject] = []
    for number in 0..<60 {
      let bytes = image(200, seed: UInt64(number))
      objects.append(
        PushObject(
          OutgoingObject(
            name: "part-\(number)", size: 200, sha256: try SHA256Hasher.digest(of: bytes)),
          from: MemorySource(bytes)))
    }
    let push = try PushOperation(
      objects, transferID: try SHA256Hasher.digest(of: Data()), to: .name(World.deviceName),
      record: { _, _ in records.withLock { $0 += 1 } },
      managerOptions: [CBManagerOptionRadioKey: world.sender], clock: world.engineClock)
    let start = world.clock.now
    _ = try await push.run()
    let seconds = (world.clock.now - start) / .seconds(1)
    #expect(records.withLock { $0 } <= Int(seconds / 2) + 3)
    try await device.stop()
  }

  @Test("an operation runs once, and says so")
  func runsOnce() async throws {
    let world = try World()
    let device = try await world.startDevice()
    let push = try world.push([image(100)])
    _ = try await push.run()
    let error = await #expect(throws: TransferError.self) { try await push.run() }
    #expect(error?.code == .invalidArgument)
    try await device.stop()
  }
}
