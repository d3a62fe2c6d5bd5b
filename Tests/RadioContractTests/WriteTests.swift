import BlockingTests
import Foundation
import Locking
import Radio
import Testing

/// Writes: sizes, order, back-pressure.
@Suite("Contract: writes", .blocking, .timeLimit(.minutes(30))) struct WriteTests {
  private struct Connected {
    let world: any RadioWorld
    let phone: Phone
    let device: Device
    let peer: PeerID
    let handle: AttributeHandle
    /// Takes commands.
    let commands: AttributeHandle
    let mtu: Int
  }

  private func connected(_ kind: RadioUnderTest, _ needs: LinkNeeds = LinkNeeds()) throws -> Connected {
    let world = kind.makeWorld(needs)
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    try phone.connect(peer)
    let mtu = try phone.settledMTU(of: peer)
    let handle = try phone.discover(Device.service, Device.values, of: peer).handle
    let commands = try phone.discover(Device.service, Device.commands, of: peer).handle
    return Connected(
      world: world, phone: phone, device: device, peer: peer, handle: handle, commands: commands, mtu: mtu)
  }

  private func bytes(_ count: Int, _ first: UInt8 = 0) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0) &* 31 &+ first })
  }

  @Test(arguments: RadioUnderTest.allCases)
  func valuesOfEverySizeArriveWholeWithResponse(_ kind: RadioUnderTest) throws {
    let link = try connected(kind)
    let sizes = [0, 1, link.mtu - 4, link.mtu - 3, link.mtu - 2, 511, 512]
    for count in sizes where count <= kind.longestRequest {
      _ = try link.phone.write(bytes(count, 7), to: link.handle, of: link.peer).get()
      #expect(link.device.stored == bytes(count, 7))
      #expect(try link.phone.read(link.handle, of: link.peer) == bytes(count, 7))
    }
    let before = link.device.stored
    guard
      case .failure(.att(.invalidAttributeValueLength)) = try link.phone.write(
        bytes(513), to: link.handle, of: link.peer)
    else { throw Unexpected() }
    #expect(link.device.stored == before)
    _ = try link.phone.write(bytes(3), to: link.handle, of: link.peer).get()
  }

  @Test(arguments: RadioUnderTest.allCases)
  func valuesOfEverySizeArriveWholeWithoutResponse(_ kind: RadioUnderTest) throws {
    let link = try connected(kind)
    let radio = try link.phone.central
    let sizes = [0, 1, link.mtu - 4, link.mtu - 3]
    for count in sizes {
      #expect(radio.writeWithoutResponse(bytes(count), to: link.commands, of: link.peer) == .accepted)
    }
    for count in [link.mtu - 2, 512, 513] {
      #expect(
        radio.writeWithoutResponse(bytes(count), to: link.commands, of: link.peer)
          == .tooLong(limit: min(link.mtu - 3, 512)))
    }
    _ = link.world.wait(within: Phone.patience) { link.device.commands.count >= sizes.count }
    #expect(link.device.commands == sizes.map { bytes($0) })
    // The link has not suffered.
    _ = try link.phone.write(bytes(3), to: link.handle, of: link.peer).get()
  }

  /// One characteristic that takes both; where the host does not tell them apart, all come as commands.
  @Test(arguments: RadioUnderTest.allCases)
  func commandsAndRequestsComeInTheirOrder(_ kind: RadioUnderTest) throws {
    let link = try connected(kind)
    let radio = try link.phone.central
    let both = try link.phone.discover(Device.service, Device.both, of: link.peer)
    #expect(both.properties == [.write, .writeWithoutResponse])
    #expect(radio.writeWithoutResponse(Data([1]), to: both.handle, of: link.peer) == .accepted)
    _ = try link.phone.write(Data([2]), to: both.handle, of: link.peer).get()
    #expect(radio.writeWithoutResponse(Data([3]), to: both.handle, of: link.peer) == .accepted)
    let writes = {
      link.device.log.compactMap {
        if case .write(_, _, let writes, let isRequest) = $0 { (writes[0].value, isRequest) } else { nil }
      }
    }
    _ = link.world.wait(within: Phone.patience) { writes().count >= 3 }
    #expect(writes().map(\.0) == [Data([1]), Data([2]), Data([3])])
    #expect(
      writes().map(\.1) == (kind.tellsRequestsFromCommands ? [false, true, false] : [false, false, false]))
  }

  /// As fast as the radio takes them: nothing is lost, nothing doubled, nothing overtakes.
  @Test(arguments: RadioUnderTest.allCases, [1, 8, 30])
  func whatIsAcceptedArrivesInOrder(_ kind: RadioUnderTest, _ depth: Int) throws {
    let link = try connected(kind, LinkNeeds(queueDepth: depth))
    let total = depth == 1 ? 200 : 2_000
    let pump = Pump(total: total, handle: link.commands, peer: link.peer)
    link.phone.react { event, radio in
      if case .readyToWrite = event { pump.push(radio) }
    }
    let radio = try link.phone.central
    pump.push(radio)
    _ = link.world.wait(within: Phone.patience) { link.device.commands.count >= total }
    #expect(link.device.commands.map { Pump.number($0) } == Array(0..<total))
    #expect(pump.refusals > 0)
    // Exactly one ready signal for each time that the radio was not ready.
    #expect(link.phone.log.filter { $0.kind == "readyToWrite" }.count == pump.refusals)
  }

  @Test(arguments: RadioUnderTest.allCases)
  func askingIsAnsweredByOneSignalToo(_ kind: RadioUnderTest) throws {
    let link = try connected(kind)
    let radio = try link.phone.central
    let signals = { link.phone.log.filter { $0.kind == "readyToWrite" }.count }
    var (accepted, refusals) = (0, 0)
    // Frames of the host itself may take the room that was just told, so each answer "no" counts.
    while refusals < 3, accepted < 100_000 {
      if radio.canWriteWithoutResponse(to: link.peer),
        radio.writeWithoutResponse(bytes(20), to: link.commands, of: link.peer) == .accepted
      {
        accepted += 1
      } else {
        refusals += 1
        try #require(link.world.wait(within: Phone.patience) { signals() >= refusals })
      }
    }
    _ = link.world.wait(within: Phone.patience) { link.device.commands.count == accepted }
    #expect(link.device.commands.count == accepted)
    #expect(refusals == 3)
    #expect(signals() == refusals)
  }

  /// The signal may come at any moment, also before the refused call has returned to a slow caller.
  @Test(arguments: RadioUnderTest.allCases)
  func aCallerOnAnotherQueueMissesNoSignal(_ kind: RadioUnderTest) throws {
    let link = try connected(kind, LinkNeeds(queueDepth: 2))
    let total = 1_000
    let pump = Pump(total: total, handle: link.commands, peer: link.peer)
    let queue = DispatchQueue(label: "writer")
    let clock = link.phone.radio.clock
    link.phone.react { event, radio in
      if case .readyToWrite = event { clock.async(on: queue) { pump.push(radio) } }
    }
    let radio = try link.phone.central
    clock.async(on: queue) { pump.push(radio) }
    _ = link.world.wait(within: Phone.patience) { link.device.commands.count >= total }
    #expect(link.device.commands.map { Pump.number($0) } == Array(0..<total))
  }

  @Test(arguments: RadioUnderTest.allCases, [1, 4])
  func notificationsThatWereTakenArrive(_ kind: RadioUnderTest, _ depth: Int) throws {
    let link = try connected(kind, LinkNeeds(queueDepth: depth))
    let pushes = try link.phone.discover(Device.service, Device.pushes, of: link.peer)
    try link.phone.ask(.setNotify(pushes, .notify), of: link.peer)
    let total = depth == 1 ? 200 : 1_000
    let next = PosixMutex(0)
    let refusals = PosixMutex(0)
    let push: @Sendable (any PeripheralRadio) -> Void = { radio in
      next.withLock { next in
        while next < total {
          guard radio.notify(Pump.value(next), of: Device.pushesID, to: nil) else {
            refusals.withLock { $0 += 1 }
            return
          }
          next += 1
        }
      }
    }
    link.device.react { event, radio in
      if case .readyToNotify = event { push(radio) }
    }
    push(try link.device.peripheral)
    _ = link.world.wait(within: Phone.patience) { link.phone.notifiedValues.count >= total }
    #expect(link.phone.notifiedValues.map { Pump.number($0) } == Array(0..<total))
    let signals = link.device.log.filter { $0.kind == "readyToNotify" }.count
    #expect(signals == refusals.withLock { $0 })
    #expect(signals > 0)
  }

  @Test(arguments: RadioUnderTest.allCases)
  func indicationsArriveAndNobodyListeningIsNoFailure(_ kind: RadioUnderTest) throws {
    let link = try connected(kind)
    let radio = try link.device.peripheral
    #expect(radio.notify(Data([9]), of: Device.indicationsID, to: nil))
    let indications = try link.phone.discover(Device.service, Device.indications, of: link.peer)
    try link.phone.ask(.setNotify(indications, .indicate), of: link.peer)
    #expect(radio.notify(Data([1]), of: Device.indicationsID, to: nil))
    #expect(radio.notify(Data(count: 512), of: Device.indicationsID, to: nil))
    _ = link.world.wait(within: Phone.patience) { link.phone.notifiedValues.count >= 2 }
    // At least what the client's ATT MTU has room for, and never more than an attribute can have.
    let counts = link.phone.notifiedValues.map(\.count)
    #expect(counts.first == 1 && counts.count == 2)
    #expect((min(512, link.mtu - 3)...(kind == .bluez ? 512 : link.mtu - 3)).contains(counts.last ?? 0))
  }
}

/// Writes numbered values until it is refused.
final class Pump: Sendable {
  private let state = PosixMutex((next: 0, refusals: 0))
  private let total: Int
  private let handle: AttributeHandle
  private let peer: PeerID

  init(total: Int, handle: AttributeHandle, peer: PeerID) {
    self.total = total
    self.handle = handle
    self.peer = peer
  }

  var refusals: Int { state.withLock(\.refusals) }

  func push(_ radio: any CentralRadio) {
    state.withLock { state in
      while state.next < total {
        guard radio.writeWithoutResponse(Self.value(state.next), to: handle, of: peer) == .accepted else {
          state.refusals += 1
          return
        }
        state.next += 1
      }
    }
  }

  static func value(_ number: Int) -> Data {
    Data(
      [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
        + [UInt8](repeating: 0xEE, count: 18))
  }

  static func number(_ value: Data) -> Int {
    value.count < 2 ? -1 : Int(value[value.startIndex]) | Int(value[value.startIndex + 1]) << 8
  }
}

extension RadioUnderTest {
  /// bluetoothd calls a characteristic that takes commands without telling requests apart.
  fileprivate var tellsRequestsFromCommands: Bool { rawValue != "bluez" }
}
