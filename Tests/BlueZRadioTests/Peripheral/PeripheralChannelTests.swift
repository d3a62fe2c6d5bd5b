import DBus
import Foundation
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

@Suite("Channels of a peripheral at bluetoothd", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct PeripheralChannelTests {
  private static let central = DeviceAddress(value: 0x00AA_0100_0000, kind: .public)

  private func publish(_ rig: PeripheralRig, isEncrypted: Bool = false) async throws -> PSM {
    rig.peripheral.publishChannel(requiresEncryption: isEncrypted)
    return try await rig.events.first { event in
      if case .channelPublished(.success(let psm)) = event { psm } else { nil }
    }
  }

  private func open(_ rig: PeripheralRig) async throws -> (FarEnd, any RadioChannel, PeerID) {
    let far = try rig.sockets.arrive(Self.central)
    let (channel, central) = try await rig.events.first { event in
      if case .channelOpened(let central, _, let channel) = event { (channel, central) } else { nil }
    }
    return (far, channel, central)
  }

  @Test("A PSM is published, and channels to it are told with their central", arguments: [true, false])
  func opening(_ isEncrypted: Bool) async throws {
    let rig = try await PeripheralRig()
    let psm = try await publish(rig, isEncrypted: isEncrypted)
    #expect((0x80...0xFF).contains(psm))
    #expect(rig.sockets.listened == [psm: isEncrypted ? .medium : .low])
    let (_, channel, central) = try await open(rig)
    #expect(central == Self.central.peer && channel.peer == central && channel.psm == psm)
  }

  @Test("No PSM is left")
  func full() async throws {
    let rig = try await PeripheralRig()
    rig.sockets.failListening(
      Dictionary(uniqueKeysWithValues: (0x80...0xFF as ClosedRange<PSM>).map { ($0, EADDRINUSE) }))
    rig.peripheral.publishChannel(requiresEncryption: false)
    guard case .channelPublished(.failure(let error)) = try await rig.events.next() else {
      Issue.record("published")
      return
    }
    #expect(error.code == .outOfSpace)
  }

  @Test("Channels end with their PSM, with the daemon and with the client", arguments: 0..<3)
  func ends(_ way: Int) async throws {
    var rig: PeripheralRig? = try await PeripheralRig()
    let psm = try await publish(try #require(rig))
    let (_, channel, _) = try await open(try #require(rig))
    let ends = Arrivals<ChannelEvent>()
    channel.setSink { ends.put($0) }
    switch way {
    case 0:
      rig?.peripheral.unpublishChannel(psm)
      rig?.peripheral.unpublishChannel(psm)
      let results = try await [rig?.events.next(), rig?.events.next()]
      guard case .channelUnpublished(psm, .success)? = results[0],
        case .channelUnpublished(psm, .failure(let error))? = results[1]
      else {
        Issue.record("other answers")
        return
      }
      #expect(error.code == .invalidParameters)
    case 1: await rig?.daemon.stop()
    default: rig = nil
    }
    try await ends.first { if case .closed = $0 { () } else { nil } }
    withExtendedLifetime(rig) {}
  }
}
