import DBus
import Foundation
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

@Suite("A peripheral, the power and the daemon", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct PeripheralLifeTests {
  @Test("Without power, commands fail")
  func off() async throws {
    let rig = try await PeripheralRig()
    rig.daemon.setPowered(false)
    try await rig.expectState(.poweredOff)
    #expect(rig.peripheral.adapterState == .poweredOff)
    rig.peripheral.addService(.plain(1))
    rig.peripheral.startAdvertising(Advertisement())
    rig.peripheral.publishChannel(requiresEncryption: false)
    guard case .serviceAdded(_, .failure(let first)) = try await rig.events.next(),
      case .advertisingStarted(.failure(let second)) = try await rig.events.next(),
      case .channelPublished(.failure(let third)) = try await rig.events.next()
    else {
      Issue.record("other answers")
      return
    }
    #expect([first, second, third].map(\.code) == Array(repeating: .notPoweredOn, count: 3))
  }

  @Test("With the power comes the advertisement, and the services have stayed")
  func power() async throws {
    let rig = try await PeripheralRig()
    _ = try await rig.publish(.plain(7, [.plain(1)]))
    rig.peripheral.startAdvertising(Advertisement())
    let first = try await rig.daemon.calls.next()
    rig.daemon.setPowered(false)
    try await rig.expectState(.poweredOff)
    rig.daemon.setPowered(true)
    try await rig.expectState(.poweredOn)
    let removed = try await rig.daemon.calls.next()
    #expect(removed.member == "UnregisterAdvertisement" && removed.path == first.path)
    let again = try await rig.daemon.calls.next()
    #expect(again.member == "RegisterAdvertisement" && again.path != first.path)
    try await rig.expectNothing()
  }

  @Test("With the daemon goes everything, unanswered requests with an answer; then all begins anew")
  func restart() async throws {
    let rig = try await PeripheralRig()
    _ = try await rig.publish(.plain(7, [.plain(1)]))
    rig.daemon.hold("RegisterApplication")
    rig.daemon.hold("RegisterAdvertisement")
    rig.peripheral.addService(.plain(8, [.plain(3)]))
    rig.peripheral.startAdvertising(Advertisement())
    _ = try await rig.daemon.calls.next()
    _ = try await rig.daemon.calls.next()
    await rig.daemon.stop()
    try await rig.expectState(.resetting)
    guard case .serviceAdded(LocalServiceID(8), .failure(let first)) = try await rig.events.next(),
      case .advertisingStarted(.failure(let second)) = try await rig.events.next()
    else {
      Issue.record("other answers")
      return
    }
    #expect(first.code == .notPoweredOn && second.code == .notPoweredOn)
    let daemon = try await FakeManagers(rig.bus)
    try await rig.expectState(.poweredOn)
    rig.peripheral.addService(.plain(7, [.plain(1)]))
    #expect(try await daemon.calls.next().member == "RegisterApplication")
    guard case .serviceAdded(LocalServiceID(7), .success) = try await rig.events.next() else {
      Issue.record("not added")
      return
    }
    rig.peripheral.startAdvertising(Advertisement())
    #expect(try await daemon.calls.next().member == "RegisterAdvertisement")
  }

  @Test("A daemon that ends in order takes its adapter back first: that is a restart like any other")
  func ending() async throws {
    let rig = try await PeripheralRig()
    rig.daemon.removeAdapter()
    await rig.expectNext(.resetting)
    await rig.daemon.stop()
    let daemon = try await FakeManagers(rig.bus)
    await rig.expectNext(.poweredOn)
    withExtendedLifetime(daemon) {}
  }

  @Test("An adapter that goes may come back within ten seconds; then it is lost", arguments: [true, false])
  func unplugged(comesBack: Bool) async throws {
    let rig = try await PeripheralRig()
    rig.daemon.removeAdapter()
    await rig.expectNext(.resetting)
    rig.clock.advance(by: BlueZHost.settleTime - .milliseconds(1))
    #expect(rig.peripheral.adapterState == .resetting)
    if comesBack {
      try await rig.daemon.restoreAdapter()
      await rig.expectNext(.poweredOn)
    }
    rig.clock.advance(by: .milliseconds(1))
    if comesBack { try await rig.expectNothing() } else { await rig.expectNext(.unsupported) }
  }
}
