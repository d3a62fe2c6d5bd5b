import BulkTransfer
import Foundation
import Radio
import TestSupport
import Testing
import VirtualRadio

/// The same disturbance at one moment after the other, from the search to the farewell.
@Suite("A disturbance at any moment of a push", .timeLimit(.minutes(30)))
struct AnyMomentTests {
  enum Disturbance: CaseIterable, Sendable {
    case cancelled
    case cancelledAndLost
    case senderOff
    case senderReset
    case deviceOff
    case deviceReset
    case outOfReach
    case paused
    case pausedAndLost

    var isCancellation: Bool { self == .cancelled || self == .cancelledAndLost }
  }

  /// A few moments, others for each disturbance and carrier: all of them together are 60 ms apart. `TEST_THINNING=0.06` tries each disturbance
  /// every 60 ms.
  private static func moments(_ choice: CarrierChoice, _ disturbance: Disturbance) -> [Int] {
    let place = (Disturbance.allCases.firstIndex(of: disturbance) ?? 0) * 2 + (choice == .gatt ? 0 : 1)
    return Array(stride(from: place * 60, through: 6600, by: Sweep.stride(1080)))
  }

  @Test(
    "ends in success or in the error that was asked for, and the next push succeeds",
    arguments: [CarrierChoice.gatt, .l2cap], Disturbance.allCases)
  func disturbed(choice: CarrierChoice, disturbance: Disturbance) async throws {
    let options = PushOptions(via: choice)
    for moment in Self.moments(choice, disturbance) {
      let world = try World(
        try LinkParameters(parsing: "interval=100,packets=4,timeout=2000"),
        flash: SimulatedFlash.Profile(eraseTime: .milliseconds(40), syncTime: .milliseconds(300)))
      let device = try await world.startDevice()
      let contents = [image(7000), image(12_000, seed: 3)]
      let push = try world.push(contents, options: options)

      world.clock.beginActivity()
      let task = world.start(push)
      let timer = world.clock.schedule(after: .milliseconds(moment)) {
        Self.apply(disturbance, in: world, to: push, task)
      }
      world.clock.endActivity()
      let outcome = await task.value
      timer.cancel()

      let place = "\(disturbance) after \(moment) ms"
      if let error = outcome.error {
        #expect(disturbance.isCancellation && error.code == .cancelled, "\(place): \(error)")
        _ = try await world.push(contents, options: options).run()
      }
      for (index, bytes) in contents.enumerated() {
        #expect(world.flash.contents(of: "image-\(index)") == bytes, "\(place)")
      }
      #expect(world.clock.now < .seconds(90), "\(place)")
      try await device.stop()
    }
  }

  private static func apply(
    _ disturbance: Disturbance, in world: World, to push: PushOperation, _ task: Task<PushOutcome, Never>
  ) {
    let air = world.air
    func later(_ delay: Duration, _ work: @escaping @Sendable () -> Void) {
      // Kept until it is done: a timer that nobody holds is still one.
      _ = world.clock.schedule(after: delay, work)
    }
    switch disturbance {
    case .cancelled: task.cancel()
    case .cancelledAndLost:
      task.cancel()
      air.setInReach(false, of: world.device)
      later(.seconds(4)) { air.setInReach(true, of: world.device) }
    case .senderOff, .senderReset:
      air.setPower(disturbance == .senderOff ? .poweredOff : .resetting, of: world.phone)
      later(.milliseconds(1500)) { air.setPower(.poweredOn, of: world.phone) }
    case .deviceOff, .deviceReset:
      air.setPower(disturbance == .deviceOff ? .poweredOff : .resetting, of: world.device)
      later(.milliseconds(1500)) { air.setPower(.poweredOn, of: world.device) }
    case .outOfReach:
      air.setInReach(false, of: world.device)
      later(.seconds(4)) { air.setInReach(true, of: world.device) }
    case .paused:
      push.pause()
      later(.seconds(25)) { push.resume() }
    case .pausedAndLost:
      push.pause()
      later(.milliseconds(500)) { air.setInReach(false, of: world.device) }
      later(.seconds(4)) { air.setInReach(true, of: world.device) }
      later(.seconds(15)) { push.resume() }
    }
  }
}
