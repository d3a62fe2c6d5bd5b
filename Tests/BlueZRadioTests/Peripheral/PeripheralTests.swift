import DBus
import Foundation
import Radio
import Testing

@testable import BlueZRadio

@Suite("A peripheral at bluetoothd", TestBus.isInstalled, .timeLimit(.minutes(30))) struct PeripheralTests {
  private static let value = LocalCharacteristicID(1)
  private static let pushes = LocalCharacteristicID(2)
  private static let central = FakeManagers.central

  private func read(_ rig: PeripheralRig) async throws -> (ServerRequestID, Int) {
    try await rig.events.first { event in
      if case .read(let id, Self.central, Self.value, let offset) = event { (id, offset) } else { nil }
    }
  }

  private func written(_ rig: PeripheralRig) async throws -> (ServerRequestID, ServerWrite, Bool) {
    try await rig.events.first { event in
      guard case .write(let id, Self.central, let writes, let needsResponse) = event else { return nil }
      return writes.first.map { (id, $0, needsResponse) }
    }
  }

  // MARK: Services

  @Test("A service is shown with everything that the daemon asks for, and taken back")
  func services() async throws {
    let rig = try await PeripheralRig()
    let descriptor = LocalDescriptor(uuid: BluetoothUUID(UInt16(0x2901)), value: Data("name".utf8))
    let published = try await rig.publish(
      .plain(
        7, [.plain(1, [.read, .notify], descriptors: [descriptor]), .plain(3, .read, value: Data([9]))]))
    let service = try #require(published.objects.first { $0.value[BlueZ.gattService] != nil })
    #expect(service.value[BlueZ.gattService]?["Primary"] == .boolean(true))
    #expect(
      service.value[BlueZ.gattService]?["UUID"] == .string("0000d007-0000-1000-8000-00805f9b34fb"))
    let first = try #require(
      published.characteristics.first.flatMap { published.objects[$0]?[BlueZ.gattCharacteristic] })
    #expect(first["Service"] == .objectPath(service.key))
    #expect(first["Flags"] == ["read", "notify"].dbusValue)
    #expect(first["NotifyAcquired"] == .boolean(false))
    #expect(first["WriteAcquired"] == nil)
    let extra = try #require(published.objects.first { $0.value[BlueZ.gattDescriptor] != nil })
    #expect(
      extra.value[BlueZ.gattDescriptor]?["Characteristic"]
        == published.characteristics.first.map { .objectPath($0) })
    #expect(
      try await rig.daemon.call("ReadValue", extra.key, of: published.client) == [.bytes(Array("name".utf8))])

    rig.peripheral.removeService(LocalServiceID(7))
    let call = try await rig.daemon.calls.next()
    #expect(call.member == "UnregisterApplication" && call.path == published.root)
  }

  @Test("Refusals of the daemon are told")
  func refusedServices() async throws {
    let rig = try await PeripheralRig()
    rig.daemon.refuse(
      "RegisterApplication",
      DBusError(name: BlueZ.Failure.failed, message: "Failed to create entry in database"))
    for isProtected in [false, true] {
      rig.peripheral.addService(.plain(7, [.plain(1, [.notify], isProtected: isProtected)]))
      let code = try await rig.events.first { event in
        if case .serviceAdded(LocalServiceID(7), .failure(let error)) = event { error.code } else { nil }
      }
      #expect(code == (isProtected ? .notSupported : .other))
    }
    rig.daemon.refuse("RegisterApplication", nil)
    rig.peripheral.addService(.plain(7, [.plain(1)]))
    try await rig.events.first { event in
      if case .serviceAdded(LocalServiceID(7), .success) = event { () } else { nil }
    }
  }

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

  // MARK: Reads and writes

  @Test("Reads ask the client, from the offset on, and tell what it answers")
  func reads() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1)]))
    async let answer = rig.daemon.call(
      "ReadValue", published.characteristics[0], of: published.client, [],
      ["offset": .uint16(5), "mtu": .uint16(185)])
    let (id, offset) = try await read(rig)
    #expect(offset == 5)
    #expect(rig.peripheral.attMTU(of: Self.central) == 185)
    rig.peripheral.respond(toRead: id, with: .success(Data([1, 2])))
    rig.peripheral.respond(toRead: id, with: .success(Data([3])))
    #expect(try await answer == [.bytes([1, 2])])
  }

  @Test("Refusals reach the daemon in its words", arguments: [0x07, 0x81, 0x0F] as [UInt8])
  func refusedReads(_ code: UInt8) async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1)]))
    async let answer = rig.daemon.call("ReadValue", published.characteristics[0], of: published.client)
    let (id, _) = try await read(rig)
    rig.peripheral.respond(toRead: id, with: .failure(ATTErrorCode(rawValue: code)))
    let expected = ATTAnswer.refusal(ATTErrorCode(rawValue: code), of: .read)
    do {
      _ = try await answer
      Issue.record("not refused")
    } catch let error as DBusError {
      #expect(error.name == expected.name && error.message == expected.message)
    }
  }

  @Test("A request that nobody answers is refused before the daemon gives up, and a late answer is nothing")
  func lateAnswers() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1, [.read, .write])]))
    let path = published.characteristics[0]
    async let answer = rig.daemon.call("ReadValue", path, of: published.client)
    let (id, _) = try await read(rig)
    rig.clock.advance(by: .milliseconds(4400))
    rig.clock.advance(by: .milliseconds(100))
    do {
      _ = try await answer
      Issue.record("answered")
    } catch let error as DBusError {
      #expect(error.name == DBusErrorName.failed)
    }
    rig.peripheral.respond(toRead: id, with: .success(Data([1])))
    async let next = rig.daemon.call("WriteValue", path, of: published.client, [.bytes([4])])
    let (nextID, write, needsResponse) = try await written(rig)
    #expect(needsResponse && write.value == Data([4]) && write.offset == 0)
    // The answer to another kind of request is a mistake, which does not leave it open.
    rig.peripheral.respond(toWrites: nextID, with: .success(()))
    _ = try await next
  }

  @Test("A write that wants no answer needs none and gets none")
  func commands() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1, [.write, .writeWithoutResponse])]))
    for number in 0..<20 as Range<UInt8> {
      let message = try DBusMessage.call(
        destination: published.client, path: published.characteristics[0],
        interface: BlueZ.gattCharacteristic, member: "WriteValue",
        body: [.bytes([number]), .options(["device": .objectPath(FakeManagers.device)])])
      try await rig.daemon.bus.send(message)
    }
    for number in 0..<20 as Range<UInt8> {
      let (id, write, needsResponse) = try await written(rig)
      #expect(write.value == Data([number]) && !needsResponse)
      rig.peripheral.respond(toWrites: id, with: .failure(.unlikelyError))
    }
  }

  @Test("Permissions that a property hides are checked here")
  func permissions() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(
      .plain(
        7,
        [
          .plain(1, [.read, .write], []),
          .plain(3, [.read, .write], [.read, .write], value: Data((0..<100).map { UInt8($0) })),
        ]))
    let (closed, fixed) = (published.characteristics[0], published.characteristics[1])
    for (path, member, body) in [
      (closed, "ReadValue", []), (closed, "WriteValue", [.bytes([1])]), (fixed, "WriteValue", [.bytes([1])]),
    ] as [(ObjectPath, String, [DBusValue])] {
      await #expect(throws: DBusError.self) {
        _ = try await rig.daemon.call(member, path, of: published.client, body)
      }
    }
    #expect(
      try await rig.daemon.call("ReadValue", fixed, of: published.client, [], ["offset": .uint16(98)])
        == [.bytes([98, 99])])
    await #expect(throws: DBusError.self) {
      _ = try await rig.daemon.call("ReadValue", fixed, of: published.client, [], ["offset": .uint16(101)])
    }
    try await rig.expectNothing()
  }

  @Test("Nobody but the daemon may call")
  func strangers() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1, [.read, .write, .notify])]))
    let stranger = try await DBusConnection.open(rig.bus.address)
    let options = DBusValue.options(["device": .objectPath(FakeManagers.device)])
    for (member, body) in [
      ("ReadValue", [options]), ("WriteValue", [.bytes([1]), options]), ("AcquireNotify", [options]),
      ("StartNotify", []), ("StopNotify", []), ("Confirm", []),
    ] as [(String, [DBusValue])] {
      await #expect(throws: DBusError.self, "\(member)") {
        _ = try await stranger.call(
          .call(
            destination: published.client, path: published.characteristics[0],
            interface: BlueZ.gattCharacteristic, member: member, body: body))
      }
    }
    try await rig.expectNothing()
  }

  @Test("Requests of a link that has ended are nobody's")
  func endOfLink() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1)]))
    async let answer = rig.daemon.call("ReadValue", published.characteristics[0], of: published.client)
    let (id, _) = try await read(rig)
    rig.daemon.setConnected(false)
    do {
      _ = try await answer
      Issue.record("answered")
    } catch let error as DBusError { #expect(error.name == DBusErrorName.failed) }
    rig.peripheral.respond(toRead: id, with: .success(Data()))
    try await rig.expectNothing()
    #expect(rig.peripheral.attMTU(of: Self.central) == nil)
  }

  // MARK: Values

  private func subscribed(
    _ rig: PeripheralRig, _ properties: GATTProperties = .notify
  ) async throws -> PeripheralRig.Published {
    let published = try await rig.publish(.plain(7, [.plain(2, properties, [])]))
    try await rig.daemon.subscribe(published.characteristics[0], of: published.client)
    try await rig.events.first { event in
      if case .subscribed(Self.central, Self.pushes) = event { () } else { nil }
    }
    try await rig.daemon.listen()
    return published
  }

  @Test(
    "Values go to the daemon, in order; at their bound the read of an attribute makes room, and one signal tells so"
  )
  func values() async throws {
    let rig = try await PeripheralRig()
    let published = try await subscribed(rig)
    #expect(rig.peripheral.attMTU(of: Self.central) == 100)
    var sent = 0
    while sent < 1000, rig.peripheral.notify(Data([UInt8(sent)]), of: Self.pushes, to: nil) { sent += 1 }
    #expect(sent == 64)
    for number in 0..<sent {
      let (path, value) = try await rig.daemon.values.next()
      #expect(path == published.characteristics[0] && value == [UInt8(number)])
    }
    try await rig.expectNothing()
    try await rig.daemon.reads.next().reply([.bytes([0])])
    guard case .readyToNotify = try await rig.events.next() else {
      Issue.record("something else")
      return
    }
    #expect(rig.peripheral.notify(Data([1]), of: Self.pushes, to: [Self.central]))
    try await rig.expectNothing()
  }

  @Test("Where an attribute cannot be read, a window is taken for sent after a while")
  func noEvidence() async throws {
    let rig = try await PeripheralRig()
    let published = try await subscribed(rig)
    while rig.peripheral.notify(Data(count: 20), of: Self.pushes, to: nil) {}
    try await rig.daemon.reads.next().fail(DBusError(name: BlueZ.Failure.notAuthorized, message: ""))
    // What the daemon says comes in order: once this is answered, the failure is known.
    _ = try await rig.daemon.call("Confirm", published.characteristics[0], of: published.client)
    try await rig.expectNothing()
    rig.clock.advance(by: .milliseconds(1000))
    guard case .readyToNotify = try await rig.events.next() else {
      Issue.record("something else")
      return
    }
  }

  @Test("Indications wait for confirmations")
  func indications() async throws {
    let rig = try await PeripheralRig()
    let published = try await subscribed(rig, .indicate)
    var sent = 0
    while sent < 1000, rig.peripheral.notify(Data([1]), of: Self.pushes, to: nil) { sent += 1 }
    #expect(sent == 4)
    _ = try await rig.daemon.call("Confirm", published.characteristics[0], of: published.client)
    guard case .readyToNotify = try await rig.events.next() else {
      Issue.record("something else")
      return
    }
    #expect(rig.peripheral.notify(Data([1]), of: Self.pushes, to: nil))
    #expect(!rig.peripheral.notify(Data([1]), of: Self.pushes, to: nil))
  }

  @Test("A subscription ends with its last word, with its link, and with its service", arguments: 0..<3)
  func ends(_ way: Int) async throws {
    let rig = try await PeripheralRig()
    let published = try await subscribed(rig)
    while rig.peripheral.notify(Data([1]), of: Self.pushes, to: nil) {}
    switch way {
    case 0: _ = try await rig.daemon.call("StopNotify", published.characteristics[0], of: published.client)
    case 1: rig.daemon.setConnected(false)
    default: rig.peripheral.removeAllServices()
    }
    if way < 2 {
      guard case .unsubscribed(Self.central, Self.pushes) = try await rig.events.next() else {
        Issue.record("something else")
        return
      }
    }
    guard case .readyToNotify = try await rig.events.next() else {
      Issue.record("something else")
      return
    }
    #expect(rig.peripheral.notify(Data([1]), of: Self.pushes, to: nil))
    try await rig.expectNothing()
  }

  @Test("A bonded central comes back as a subscriber, another does not", arguments: [true, false])
  func bonded(_ isBonded: Bool) async throws {
    let rig = try await PeripheralRig()
    if isBonded { rig.daemon.setBonded() }
    let published = try await subscribed(rig)
    rig.daemon.setConnected(false)
    guard case .unsubscribed = try await rig.events.next() else {
      Issue.record("something else")
      return
    }
    rig.daemon.setConnected(true)
    if isBonded {
      guard case .subscribed(Self.central, Self.pushes) = try await rig.events.next() else {
        Issue.record("something else")
        return
      }
    }
    // The daemon's words come in order: what was sent before has been handled.
    await #expect(throws: DBusError.self) {
      _ = try await rig.daemon.call("ReadValue", published.characteristics[0], of: published.client)
    }
    try await rig.expectNothing()
  }

  // MARK: Advertising

  @Test("Advertising starts and stops at the daemon")
  func advertising() async throws {
    let rig = try await PeripheralRig()
    for _ in 0..<3 {
      rig.peripheral.startAdvertising(
        Advertisement(localName: "D", services: [BluetoothUUID(UInt16(0xFFF0))]))
      let call = try await rig.daemon.calls.next()
      #expect(call.member == "RegisterAdvertisement")
      let properties = try await rig.daemon.bus.properties(
        of: BlueZ.advertisement, at: call.path, destination: call.sender)
      #expect(properties["LocalName"] == .string("D"))
      guard case .advertisingStarted(.success) = try await rig.events.next() else {
        Issue.record("not started")
        return
      }
      rig.peripheral.stopAdvertising()
      let end = try await rig.daemon.calls.next()
      #expect(end.member == "UnregisterAdvertisement" && end.path == call.path)
    }
  }

  @Test(
    "Refusals of the daemon are told",
    arguments: [
      (BlueZ.Failure.notPermitted, .outOfSpace), (BlueZ.Failure.invalidLength, .outOfSpace),
      (DBusErrorName.unknownMethod, .notSupported), (BlueZ.Failure.failed, .other),
    ] as [(String, RadioError.Code)])
  func refusedAdvertising(_ name: String, _ code: RadioError.Code) async throws {
    let rig = try await PeripheralRig()
    rig.daemon.refuse("RegisterAdvertisement", DBusError(name: name, message: "no"))
    rig.peripheral.startAdvertising(Advertisement())
    guard case .advertisingStarted(.failure(let error)) = try await rig.events.next() else {
      Issue.record("started")
      return
    }
    #expect(error.code == code)
  }

  @Test("A client that goes in the middle of a registration takes it back once it was answered")
  func releasedEarly() async throws {
    let bus = try await TestBus()
    let daemon = try await FakeManagers(bus)
    daemon.hold("RegisterAdvertisement")
    let events = Arrivals<PeripheralEvent>()
    // Radio and client are gone after this.
    try await {
      let radio = try BlueZRadio(bus: bus.address)
      let peripheral = radio.makePeripheral { events.put($0) }
      try await events.first { if case .adapterStateChanged(.poweredOn) = $0 { () } else { nil } }
      peripheral.startAdvertising(Advertisement())
      _ = try await daemon.calls.next()
    }()
    try await daemon.held.next().reply()
    #expect(try await daemon.calls.next().member == "UnregisterAdvertisement")
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
}

@Suite("Channels of a peripheral at bluetoothd", TestBus.isInstalled, .timeLimit(.minutes(30)))
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
