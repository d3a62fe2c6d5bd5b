import BlockingTests
import Foundation
import Radio
import Testing

@testable import VirtualRadio

@Suite("Broken and hostile processes in the air", .blocking, .timeLimit(.minutes(30)))
struct HostileProcessTests {
  enum Misdeed: CaseIterable {
    case garbage, hugeLength, zeroLength, wrongMagic, halfMessage, frameBeforeLink, observeBeforeHello
    case helloTwice, badParameters, hostsMessage
  }

  private func commit(_ misdeed: Misdeed, _ visitor: RawVisitor) {
    switch misdeed {
    case .garbage: visitor.send((0..<2000).map { UInt8(truncatingIfNeeded: $0 &* 37) })
    case .hugeLength: visitor.send([0xFF, 0xFF, 0xFF, 0x7F, 7])
    case .zeroLength: visitor.send([0, 0, 0, 0])
    case .wrongMagic: visitor.send([8, 0, 0, 0, 1, 0x58, 0x58, 0x58, 0x58, 1, 0, 0x61])
    case .halfMessage: visitor.send([9, 0, 0, 0, 1, 0x42])
    case .frameBeforeLink:
      visitor.greet(as: "x")
      visitor.send(.frame([1, 2, 3, 4]))
    case .observeBeforeHello: visitor.send(.observe)
    case .helloTwice:
      visitor.greet(as: "x")
      visitor.greet(as: "x")
    case .badParameters:
      visitor.greet(as: "x")
      visitor.send([6, 0, 0, 0, 3] + Array("mtu=1".utf8))
    case .hostsMessage:
      visitor.greet(as: "x")
      visitor.send(.ended(.supervisionTimeout))
    }
  }

  @Test(
    "a visitor that does not keep to the protocol loses its connection and nothing else",
    arguments: Misdeed.allCases)
  func badVisitor(_ misdeed: Misdeed) throws {
    let folder = AirFolder()
    let device = TestDevice(try folder.radio("bench"))
    try device.started().get()
    let phone = TestPhone(try folder.radio("phone"))
    try phone.connect(device.radio.peerID)
    do {
      let visitor = try RawVisitor(folder, to: "bench")
      commit(misdeed, visitor)
      // Half a message is waited for, but not for ever; here the visitor goes.
      if misdeed != .halfMessage { try visitor.waitForEnd() }
    }
    let handle = try phone.findCharacteristic(of: device.radio.peerID).handle
    #expect(
      phone.client.writeWithoutResponse(Data([1]), to: handle, of: device.radio.peerID) == .accepted)
    _ = try device.log.expect("the value") { _ in device.written == [Data([1])] ? true : nil }
  }

  @Test("another version is answered with ours, and closed")
  func otherVersion() throws {
    let folder = AirFolder()
    let device = TestDevice(try folder.radio("bench"))
    try device.started().get()
    let visitor = try RawVisitor(folder, to: "bench")
    visitor.send(.hello(version: 99, name: "future"))
    let hello = try visitor.receive { message -> AirMessage? in
      if case .hello = message { message } else { nil }
    }
    #expect(hello == .hello(version: 1, name: "bench"))
    try visitor.waitForEnd()
  }

  @Test("links are accepted with the limits of both, and refused with a reason")
  func acceptance() throws {
    let folder = AirFolder()
    let device = TestDevice(
      try folder.radio("bench", link: LinkParameters(phy: .le1M, attMTU: 185, packetErrorRate: 0.01)))
    try device.started().get()
    func connect(_ name: String, _ parameters: LinkParameters) throws -> (RawVisitor, AirMessage?) {
      let visitor = try RawVisitor(folder, to: "bench")
      visitor.greet(as: name)
      visitor.send(.connect(parameters))
      let answer = try visitor.receive { message -> AirMessage? in
        switch message {
        case .accepted, .refused: message
        default: nil
        }
      }
      return (visitor, answer)
    }
    let (first, answer) = try connect("phone", LinkParameters(dataLength: 100, attMTU: 247, queueDepth: 3))
    #expect(
      answer
        == .accepted(
          LinkParameters(
            phy: .le1M, dataLength: 100, attMTU: 185, packetErrorRate: 0.01, queueDepth: 3)))
    let (second, refusal) = try connect("phone", LinkParameters())
    #expect(refusal == .refused(.alreadyLinked, text: "there is a link with phone already"))
    try second.waitForEnd()
    let (third, other) = try connect("tablet", LinkParameters())
    guard case .accepted = other else { Issue.record("\(String(describing: other))"); return }
    first.send(.terminate)
    let end = try first.receive { message -> LinkEnd? in
      if case .ended(let reason) = message { reason } else { nil }
    }
    #expect(end == .terminated(by: .central))
    try first.waitForEnd()
    device.client.stopAdvertising()
    let (_, last) = try connect("watch", LinkParameters())
    #expect(last == .refused(.notAdvertising, text: "not advertising"))
    withExtendedLifetime(third) {}
  }

  @Test("a central that floods or sends out of turn is cut off, and only it")
  func flood() throws {
    let folder = AirFolder()
    let device = TestDevice(try folder.radio("bench", link: LinkParameters(queueDepth: 1)))
    try device.started().get()
    let visitor = try RawVisitor(folder, to: "bench")
    visitor.greet(as: "flooder")
    visitor.send(.connect(LinkParameters()))
    visitor.send(.observe)
    try visitor.waitForEnd()
    let phone = TestPhone(try folder.radio("phone"))
    try phone.connect(device.radio.peerID)
  }

  @Test("frames that are no L2CAP do not disturb a link", arguments: 0..<5 as Range<UInt64>)
  func nonsenseFrames(_ seed: UInt64) throws {
    let folder = AirFolder()
    let device = TestDevice(try folder.radio("bench"))
    try device.started().get()
    let visitor = try RawVisitor(folder, to: "bench")
    visitor.greet(as: "fuzzer")
    visitor.send(.connect(LinkParameters()))
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<30 {
      let length = Int.random(in: 1...60, using: &generator)
      let body = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
      visitor.send(
        .frame([UInt8(length), 0, [4, 5, 6, 0x40].randomElement(using: &generator) ?? 4, 0] + body))
    }
    visitor.send(.terminate)
    // Either in order, or cut off for breaking the attribute protocol; never a trap, and the device goes on.
    _ = try visitor.receive { message -> Bool? in if case .ended = message { true } else { nil } }
    let phone = TestPhone(try folder.radio("phone"))
    try phone.connect(device.radio.peerID)
  }

  @Test("a peripheral's socket that talks nonsense is passed over")
  func badPeripheral() throws {
    let folder = AirFolder()
    let phone = TestPhone(try folder.radio("phone"))
    let listener = try AirDirectory(path: folder.path).listen(as: "evil")
    phone.client.startScan(ScanFilter())
    #expect(isReadable(listener.socket))
    let socket = try #require(try UnixSocket.accept(listener.socket))
    let evil = RawVisitor(accepted: socket)
    evil.send([3, 0, 0, 0, 99, 1, 2])
    try evil.waitForEnd()
    let device = TestDevice(try folder.radio("bench"))
    _ = try phone.sighting(of: device.radio.peerID)
  }

  @Test("a process cannot advertise under another's name")
  func impostor() throws {
    let folder = AirFolder()
    let phone = TestPhone(try folder.radio("phone"))
    let listener = try AirDirectory(path: folder.path).listen(as: "evil")
    phone.client.startScan(ScanFilter())
    #expect(isReadable(listener.socket))
    let socket = try #require(try UnixSocket.accept(listener.socket))
    let evil = RawVisitor(accepted: socket)
    evil.greet(as: "bench")
    evil.send(.advertisement(Advertisement(localName: "bench"), rssi: -1, isConnectable: true))
    try evil.waitForEnd()
    #expect(!phone.log.all.contains { if case .discovered = $0 { true } else { false } })
  }

  @Test("a central that does not read makes the link stand still, and what is held for it is bounded")
  func centralThatDoesNotRead() throws {
    let folder = AirFolder()
    let device = TestDevice(try folder.radio("bench", link: LinkParameters(attMTU: 247)))
    try device.started().get()
    let visitor = try RawVisitor(folder, to: "bench")
    visitor.greet(as: "sleeper")
    visitor.send(.connect(LinkParameters(attMTU: 247)))
    // Exchange MTU, then write the configuration of the second characteristic's value.
    visitor.send(.frame([3, 0, 4, 0, 0x02, 247, 0]))
    let (value, configuration) = (LocalCharacteristicID(1), UInt8(13))
    visitor.send(.frame([5, 0, 4, 0, 0x12, configuration, 0, 1, 0]))
    _ = try device.log.expect("subscription") { event in
      if case .subscribed(_, value) = event { true } else { nil }
    }
    let payload = Data(count: 200)
    var accepted = 0
    var isStuck = false
    while !isStuck, accepted < 1_000_000 {
      let seen = device.log.all.count
      if device.client.notify(payload, of: value, to: nil) {
        accepted += 1
      } else {
        isStuck = !device.log.waits(after: seen, within: .seconds(1)) { event in
          if case .readyToNotify = event { true } else { false }
        }
      }
    }
    #expect(isStuck)
    #expect(accepted * payload.count < 4 * AirConnection.highWater)
    var notifications = 0
    _ = try visitor.receive { message -> Bool? in
      if case .frame(let frame) = message, frame[4] == 0x1B { notifications += 1 }
      return notifications == accepted ? true : nil
    }
    #expect(device.client.notify(payload, of: value, to: nil))
  }

  @Test(
    "what somebody has put in the place of a name's lock is left alone", arguments: ["link", "fifo", "twice"])
  func foreignLock(kind: String) throws {
    let folder = AirFolder()
    try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
    let (other, lock) = ("\(folder.path)/precious", "\(folder.path)/bench.lock")
    try Data("firmware".utf8).write(to: URL(filePath: other))
    switch kind {
    case "link": try FileManager.default.createSymbolicLink(atPath: lock, withDestinationPath: other)
    case "twice": try FileManager.default.linkItem(atPath: other, toPath: lock)
    default: try #require(unsafe mkfifo(lock, 0o600) == 0)
    }
    let error = #expect(throws: VirtualAirError.self) { try folder.radio("bench").takeName() }
    #expect(error?.code == .socket)
    #expect(try String(contentsOfFile: other, encoding: .utf8) == "firmware")
  }
}
