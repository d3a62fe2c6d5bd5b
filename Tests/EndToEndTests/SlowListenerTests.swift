import BulkTransfer
import CoreBluetooth
import Foundation
import Testing
import VirtualRadio

@Suite("Listeners that are slow", .timeLimit(.minutes(20)))
struct SlowListenerTests {
  private static let count = 500
  private static let objects = (0..<count).map { image(40, seed: UInt64($0)) }

  @Test("Whoever reads nothing before the end still hears of every object, at both ends")
  func blocked() async throws {
    let world = try World(LinkParameters(parsing: "interval=7.5"))
    var received = try ReceiveOptions(name: World.deviceName)
    received.once = true
    let receiver = ReceiveOperation(
      into: world.flash, options: received, managerOptions: [CBManagerOptionRadioKey: world.device],
      clock: world.engineClock)
    let receiving = Task { try await receiver.run() }
    var atDevice = receiver.events.makeAsyncIterator()
    guard case .ready = await atDevice.next() else {
      Issue.record("the device is not ready")
      return
    }
    let push = try world.push(Self.objects, options: PushOptions(via: .l2cap))
    let atSender = push.events.makeAsyncIterator()
    let report = try await push.run()
    try await receiving.value

    var told: [PushEvent] = []
    var sender = atSender
    while let event = await sender.next() { told.append(event) }
    let verified = told.compactMap { if case .verified(let index, _, _) = $0 { index } else { nil } }
    #expect(verified == Array(0..<Self.count))
    let accepted = told.compactMap { if case .accepted(let index, _, _, _) = $0 { index } else { nil } }
    #expect(accepted == Array(0..<Self.count))
    #expect(report.progress.phase == .done)

    var names: [String] = []
    while let event = await atDevice.next() {
      if case .session(.objectVerified(let object, _), _, _) = event { names.append(object.name) }
    }
    #expect(names == (0..<Self.count).map { "image-\($0)" })
  }

  @Test("A device whose listener owes too much serves nobody until it has caught up")
  func crowded() async throws {
    let world = try World()
    var options = try ReceiveOptions(name: World.deviceName)
    options.unheardLimit = 30
    let receiver = ReceiveOperation(
      into: world.flash, options: options, managerOptions: [CBManagerOptionRadioKey: world.device],
      clock: world.engineClock)
    let receiving = Task { try await receiver.run() }
    var events = receiver.events.makeAsyncIterator()
    _ = await events.next()
    let (result, _) = await
      (try world.push(Array(Self.objects.prefix(40)), options: PushOptions(via: .l2cap)))
      .collect()
    guard case .failure(let error) = result else {
      Issue.record("a device that nobody listens to went on without end")
      return
    }
    #expect(error.code == .refused && error.isRetriable, "\(error)")
    #expect(error.message.contains("reports are not being read"), "\(error)")
    let stored = (0..<40).prefix { world.flash.contents(of: "image-\($0)") != nil }.count
    #expect(stored > 0 && stored < 40)

    // Now it is read, and the same push goes on.
    let listener = Task { [events] in
      var events = events
      var verified = 0
      while let event = await events.next() {
        if case .session(.objectVerified, _, _) = event { verified += 1 }
      }
      return verified
    }
    // How soon is no matter of simulated time, so it is refused as often as it takes.
    var report: PushReport?
    while report == nil {
      do {
        report = try await world.push(Array(Self.objects.prefix(40)), options: PushOptions(via: .l2cap)).run()
      } catch let error as TransferError where error.code == .refused && error.isRetriable {}
    }
    receiving.cancel()
    try await receiving.value
    #expect(await listener.value >= 40)
  }
}
