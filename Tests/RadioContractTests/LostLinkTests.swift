import BlockingTests
import Foundation
import Radio
import Testing

/// In which state a peer goes away.
enum Moment: String, CaseIterable, CustomTestStringConvertible {
  case idle, reading, writing, longWriting, discovering, commandsQueued, subscribed, channelOpen,
    openingChannel

  var testDescription: String { rawValue }

  /// A request is with the peer's program then.
  var leavesARequest: Bool { [.reading, .writing, .longWriting].contains(self) }

  static let quiet = allCases.filter { !$0.leavesARequest }
  static let inRequests = allCases.filter(\.leavesARequest)
}

/// How a peer goes away.
enum Departure: String, CaseIterable, CustomTestStringConvertible {
  case vanishes, switchesOff

  var testDescription: String { rawValue }
}

@Suite("Contract: lost links", .blocking, .timeLimit(.minutes(30))) struct LostLinkTests {
  private static let endsInTheMiddle: ConditionTrait = .disabled(
    if: BlueZWorld.isHere,
    "bluetoothd 5.66 is both sides there, and may end when a link of its own adapters does with a request pending"
  )

  @Test(arguments: RadioUnderTest.allCases, Moment.quiet)
  func aLostPeerIsTold(_ kind: RadioUnderTest, _ moment: Moment) throws {
    try lose(kind, moment, .vanishes)
  }

  @Test(endsInTheMiddle, arguments: RadioUnderTest.allCases, Moment.inRequests)
  func aPeerThatIsLostInARequestIsTold(_ kind: RadioUnderTest, _ moment: Moment) throws {
    try lose(kind, moment, .vanishes)
  }

  @Test(arguments: RadioUnderTest.allCases, Moment.quiet)
  func aPeerThatSwitchesOffIsTold(_ kind: RadioUnderTest, _ moment: Moment) throws {
    try lose(kind, moment, .switchesOff)
  }

  @Test(endsInTheMiddle, arguments: RadioUnderTest.allCases, Moment.inRequests)
  func aPeerThatSwitchesOffInARequestIsTold(_ kind: RadioUnderTest, _ moment: Moment) throws {
    try lose(kind, moment, .switchesOff)
  }

  private func lose(_ kind: RadioUnderTest, _ moment: Moment, _ departure: Departure) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    try phone.connect(peer)
    _ = try phone.settledMTU(of: peer)
    let values = try phone.discover(Device.service, Device.values, of: peer)
    let commands = try phone.discover(Device.service, Device.commands, of: peer)
    let pushes = try phone.discover(Device.service, Device.pushes, of: peer)
    let psm = try device.publishChannel()
    device.setAnswers(false)
    var pending: RequestID?
    var channel: (any RadioChannel)?
    let events = ChannelLog(world)
    switch moment {
    case .idle: break
    case .reading: pending = try phone.send(.read(values.handle), to: peer)
    case .writing: pending = try phone.send(.write(values.handle, Data([1])), to: peer)
    case .longWriting: pending = try phone.send(.write(values.handle, Data(count: 512)), to: peer)
    case .discovering: pending = try phone.send(.discoverServices(nil), to: peer)
    case .commandsQueued:
      let radio = try phone.central
      for _ in 0..<1000
      where radio.writeWithoutResponse(Data(count: 20), to: commands.handle, of: peer) == .accepted {}
    case .subscribed: try phone.ask(.setNotify(pushes, .notify), of: peer)
    case .channelOpen:
      let open = try phone.open(psm, of: peer)
      open.setSink(events.sink)
      _ = open.write(Data(count: 10_000))
      channel = open
    case .openingChannel: try phone.central.openChannel(psm: psm, of: peer, id: RequestID(9_999))
    }
    switch departure {
    case .vanishes: world.takeAway(device.radio)
    case .switchesOff: world.setPower(false, of: device.radio)
    }
    let error = try #require(try phone.expectDisconnection(of: peer))
    #expect(error.code == .supervisionTimeout || error.code == .peerTerminated)
    #expect(try phone.central.attMTU(of: peer) == nil)
    #expect(
      try phone.central.writeWithoutResponse(Data([1]), to: commands.handle, of: peer) == .notConnected)
    if let channel {
      let end = try #require(events.end)
      #expect(end?.code == error.code)
      #expect(channel.write(Data([1])) == 0)
      #expect(!channel.hasSpace)
    }
    // Nothing follows, above all no late answer.
    let count = phone.log.count
    #expect(!world.wait(within: .milliseconds(80)) { phone.log.count > count })
    if let pending, moment != .discovering, moment != .longWriting {
      #expect(!phone.log.contains { if case .completed(pending, _, _) = $0 { true } else { false } })
    }
  }

  @Test(arguments: RadioUnderTest.allCases)
  func switchingOffEndsEverything(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    try phone.connect(peer)
    let commands = try phone.discover(Device.service, Device.commands, of: peer)
    world.setPower(false, of: phone.radio)
    let start = phone.log.count - 1
    try phone.expect("state", after: max(0, start)) { event in
      if case .adapterStateChanged(.poweredOff) = event { true } else { nil }
    }
    let radio = try phone.central
    #expect(radio.adapterState == .poweredOff)
    #expect(radio.attMTU(of: peer) == nil)
    #expect(radio.writeWithoutResponse(Data([1]), to: commands.handle, of: peer) == .notConnected)
    radio.startScan(ScanFilter())
    radio.connect(peer)
    let count = phone.log.count
    #expect(!world.wait(within: .milliseconds(150)) { phone.log.count > count })
    // bluetoothd may end links before it says that there is no power.
    let ends = phone.log.count { $0.kind == "disconnected" }
    #expect(ends == 0 || kind == .bluez && ends == 1)
    world.setPower(true, of: phone.radio)
    try phone.expect("state again", after: count) { event in
      if case .adapterStateChanged(.poweredOn) = event { true } else { nil }
    }
    try phone.connect(peer)
    withExtendedLifetime(device) {}
  }

  @Test(arguments: RadioUnderTest.allCases)
  func publishingWithoutPowerFails(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let device = try Device(world)
    world.setPower(false, of: device.radio)
    try device.expect("state") { event in
      if case .adapterStateChanged(.poweredOff) = event { true } else { nil }
    }
    let radio = try device.peripheral
    let start = device.log.count
    let service = LocalService(
      id: LocalServiceID(9), uuid: BluetoothUUID(UInt16(0xFFB0)), isPrimary: true, characteristics: [])
    radio.addService(service)
    radio.startAdvertising(Advertisement(localName: "D"))
    radio.publishChannel(requiresEncryption: false)
    let codes: [RadioError.Code] = [
      try device.expect("service", after: start) { event in
        if case .serviceAdded(service.id, .failure(let error)) = event { error.code } else { nil }
      },
      try device.expect("advertising", after: start) { event in
        if case .advertisingStarted(.failure(let error)) = event { error.code } else { nil }
      },
      try device.expect("PSM", after: start) { event in
        if case .channelPublished(.failure(let error)) = event { error.code } else { nil }
      },
    ]
    #expect(codes == Array(repeating: .notPoweredOn, count: 3))
  }

  @Test(arguments: RadioUnderTest.allCases)
  func aReleasedCentralLeavesItsLinks(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    try phone.connect(peer)
    let pushes = try phone.discover(Device.service, Device.pushes, of: peer)
    try phone.ask(.setNotify(pushes, .notify), of: peer)
    phone.release()
    try device.expect("unsubscription") { event in
      if case .unsubscribed(_, Device.pushesID) = event { true } else { nil }
    }
  }
}
