import BlockingTests
import Foundation
import Radio
import Testing

/// Links: how they come and go, and what comes before what.
@Suite("Contract: links", .blocking, .timeLimit(.minutes(30))) struct ConnectionTests {
  @Test(arguments: RadioUnderTest.allCases)
  func firstEventIsTheState(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    try phone.expect("state") { event in
      if case .adapterStateChanged(.poweredOn) = event { true } else { nil }
    }
    #expect(phone.log.first?.kind == "adapterStateChanged")
    #expect(device.log.first?.kind == "adapterStateChanged")
  }

  @Test(arguments: RadioUnderTest.allCases)
  func scansReportAPeerOnceAndTellWhatItSays(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    _ = try Device(world, name: "other", offers: BluetoothUUID(UInt16(0xFFA0)))
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    let start = phone.log.count
    try phone.central.startScan(ScanFilter(services: [Device.service]))
    _ = try phone.expect("second sighting", after: start) { event in
      if case .discovered = event { true } else { nil }
    }
    let sightings = phone.log.compactMap { event in
      if case .discovered(let sighting) = event { sighting } else { nil }
    }
    // One for each of the two scans, none of the other device.
    #expect(sightings.map(\.peer) == [peer, peer])
    #expect(sightings.first?.advertisement.localName == "D")
    #expect(sightings.first?.isConnectable == true)
    #expect(try phone.central.knownPeers([peer]) == [KnownPeer(id: peer, name: "D")])
    withExtendedLifetime(device) {}
  }

  @Test(arguments: RadioUnderTest.allCases)
  func connectsDiscoversAndReads(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    device.store(Data("changing".utf8))
    let peer = try phone.find(Device.service)
    try phone.connect(peer)
    let values = try phone.discover(Device.service, Device.values, of: peer)
    let fixed = try phone.discover(Device.service, Device.fixed, of: peer)
    #expect(values.properties == [.read, .write])
    #expect(try phone.read(values.handle, of: peer) == Data("changing".utf8))
    #expect(try phone.read(fixed.handle, of: peer) == Device.fixedValue)
    #expect(try phone.central.connectedPeers(withServices: [Device.service]).map(\.id) == [peer])
  }

  @Test(arguments: RadioUnderTest.allCases)
  func connectingWaitsForThePeer(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    try device.peripheral.stopAdvertising()
    _ = world.wait(within: kind.delay) { false }
    try phone.central.connect(peer)
    #expect(!world.wait(within: .milliseconds(250)) { phone.log.contains { $0.kind == "connected" } })
    let start = phone.log.count
    try device.peripheral.startAdvertising(Advertisement(services: [Device.service]))
    try phone.expect("connected", after: start) { event in
      if case .connected(peer, _) = event { true } else { nil }
    }
  }

  @Test(arguments: RadioUnderTest.allCases)
  func aPendingConnectionCanBeCancelled(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    try device.peripheral.stopAdvertising()
    _ = world.wait(within: kind.delay) { false }
    try phone.central.connect(peer)
    try phone.central.cancelConnection(peer)
    let error = try phone.expectDisconnection(of: peer)
    #expect(error == nil)
    // Without anything to cancel, nothing comes.
    let count = phone.log.count
    try phone.central.cancelConnection(peer)
    try device.peripheral.startAdvertising(Advertisement(services: [Device.service]))
    #expect(!world.wait(within: .milliseconds(250)) { phone.log.count > count })
  }

  /// Events of a link lie between its two ends, replies are in the order of requests, and what is pending at the end gets none.
  @Test(arguments: RadioUnderTest.allCases)
  func eventsComeInOrder(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    try phone.connect(peer)
    let values = try phone.discover(Device.service, Device.values, of: peer)
    let ids = try (0..<5).map { _ in try phone.send(.read(values.handle), to: peer) }
    _ = try phone.answer(ids[4])
    device.setAnswers(false)
    let pending = try [
      phone.send(.read(values.handle), to: peer), phone.send(.write(values.handle, Data([1])), to: peer),
      phone.send(.discoverServices(nil), to: peer),
    ]
    try device.expect("unanswered read", after: device.log.count - 1) { event in
      if case .read = event { true } else { nil }
    }
    try phone.central.cancelConnection(peer)
    #expect(try phone.expectDisconnection(of: peer) == nil)
    _ = try phone.send(.readRSSI, to: peer)
    try phone.expect("refusal") { event in
      if case .completed(_, _, .failure(.radio(let error))) = event, error.code == .notConnected {
        true
      } else {
        nil
      }
    }
    let answered = phone.log.compactMap { event in
      if case .completed(let id, _, .success) = event { id } else { nil }
    }
    #expect(Array(answered.suffix(5)) == ids)
    #expect(!answered.contains { pending.contains($0) })
    let linkEvents = phone.log.filter { event in
      switch event {
      case .connected, .disconnected, .mtuChanged, .completed(_, _, .success): true
      default: false
      }
    }
    #expect(linkEvents.first?.kind == "connected")
    #expect(linkEvents.last?.kind == "disconnected")
    #expect(phone.log.filter { $0.kind == "disconnected" }.count == 1)
  }

  @Test(arguments: RadioUnderTest.allCases)
  func theNextConnectionWorks(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    for round in 1...3 as ClosedRange<UInt8> {
      try phone.connect(peer)
      let values = try phone.discover(Device.service, Device.values, of: peer)
      _ = try phone.write(Data([round]), to: values.handle, of: peer).get()
      #expect(device.stored == Data([round]))
      try phone.central.cancelConnection(peer)
    }
  }

  @Test(arguments: RadioUnderTest.allCases)
  func theMTUGrowsAfterConnecting(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld(LinkNeeds(attMTU: 185, mtuExchangeDelay: .milliseconds(300)))
    let phone = Phone(world)
    let device = try Device(world)
    let peer = try phone.find(Device.service)
    #expect(try phone.central.attMTU(of: peer) == nil)
    try phone.connect(peer)
    let radio = try phone.central
    let first = radio.attMTU(of: peer)
    let commands = try phone.discover(Device.service, Device.commands, of: peer)
    let outcome = radio.writeWithoutResponse(Data(count: 21), to: commands.handle, of: peer)
    // Where time is real, the exchange may have come before we looked; it only ever grows.
    let hasGrown = kind != .virtualLockStep && (radio.attMTU(of: peer) ?? 23) > 23
    if !hasGrown {
      #expect(first == 23)
      #expect(outcome == .tooLong(limit: 20))
    }
    let mtu = try phone.expect("MTU") { event in
      if case .mtuChanged(peer, let mtu) = event { mtu } else { nil }
    }
    #expect(mtu > 23)
    #expect(radio.attMTU(of: peer) == mtu)
    #expect(radio.writeWithoutResponse(Data(count: mtu - 3), to: commands.handle, of: peer) == .accepted)
    let sizes = (outcome == .accepted ? [21] : []) + [mtu - 3]
    _ = world.wait(within: Phone.patience) { device.commands.count >= sizes.count }
    #expect(device.commands.map(\.count) == sizes)
  }

  @Test(
    .disabled(
      if: BlueZWorld.isHere,
      "one bluetoothd 5.66 with three adapters that have links with each other does not finish discovering, and may end"
    ),
    arguments: RadioUnderTest.allCases)
  func twoCentralsDoNotDisturbEachOther(_ kind: RadioUnderTest) throws {
    let world = kind.makeWorld()
    let phones = [Phone(world, name: "one"), Phone(world, name: "two")]
    let device = try Device(world)
    var peers: [PeerID] = []
    var handles: [RemoteCharacteristic] = []
    for phone in phones {
      let peer = try phone.find(Device.service)
      try phone.connect(peer)
      let pushes = try phone.discover(Device.service, Device.pushes, of: peer)
      try phone.ask(.setNotify(pushes, .notify), of: peer)
      peers.append(peer)
      handles.append(pushes)
    }
    func subscribers() -> [PeerID] {
      device.log.compactMap { event in if case .subscribed(let central, _) = event { central } else { nil } }
    }
    _ = world.wait(within: Phone.patience) { subscribers().count >= 2 }
    let centrals = subscribers()
    try #require(Set(centrals).count == 2)
    let radio = try device.peripheral
    #expect(radio.notify(Data([1]), of: Device.pushesID, to: nil))
    #expect(radio.notify(Data([2]), of: Device.pushesID, to: [centrals[1]]))
    for phone in phones {
      try phone.expect("first value") { event in
        if case .notified(_, _, Data([1])) = event { true } else { nil }
      }
    }
    try phones[0].central.cancelConnection(peers[0])
    try device.expect("unsubscription") { event in
      if case .unsubscribed(centrals[0], Device.pushesID) = event { true } else { nil }
    }
    #expect(radio.notify(Data([3]), of: Device.pushesID, to: nil))
    try phones[1].expect("last value") { event in
      if case .notified(_, _, Data([3])) = event { true } else { nil }
    }
    #expect(phones[0].notifiedValues == [Data([1])])
    #expect(phones[1].notifiedValues == [Data([1]), Data([2]), Data([3])])
  }
}

// MARK: - Ends that nobody asked for

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
