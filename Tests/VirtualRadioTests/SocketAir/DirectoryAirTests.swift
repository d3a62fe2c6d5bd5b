import BlockingTests
import ChildProcess
import Foundation
import Glibc
import Radio
import Testing

@testable import VirtualRadio

@Suite("Air between processes", .blocking, .timeLimit(.minutes(30))) struct DirectoryAirTests {
  @Test(
    "a central finds a peripheral, connects and writes; all arrives in order",
    arguments: [VirtualClock.Mode.realTime, .unpaced])
  func wholeWay(_ mode: VirtualClock.Mode) throws {
    let folder = AirFolder(mode)
    let device = TestDevice(try folder.radio("bench 1", link: LinkParameters(attMTU: 247, rssi: -61)))
    let phone = TestPhone(try folder.radio("phone", link: LinkParameters(attMTU: 100)))
    phone.client.startScan(ScanFilter(services: [TestDevice.service]))
    let peer = device.radio.peerID
    let sighting = try phone.sighting(of: peer)
    #expect(sighting.advertisement.localName == device.radio.name)
    #expect(sighting.rssi == -61)
    phone.client.stopScan()
    try phone.connect(peer)
    let handle = try phone.findCharacteristic(of: peer).handle
    #expect(phone.client.attMTU(of: peer) == 100)
    let values = (0..<500).map { index in
      Data([UInt8(index & 255), UInt8(index >> 8)]) + Data(count: index % 90)
    }
    var next = 0
    while next < values.count {
      let seen = phone.log.all.count
      switch phone.client.writeWithoutResponse(values[next], to: handle, of: peer) {
      case .accepted: next += 1
      case .notReady:
        try phone.log.expect("room", after: max(seen - 1, 0)) { event in
          if case .readyToWrite = event { () } else { nil }
        }
      case let other: Issue.record("\(other)"); return
      }
    }
    _ = try device.log.expect("the last value") { _ in device.written.count == values.count ? true : nil }
    #expect(device.written == values)
    let start = phone.log.all.count
    phone.client.cancelConnection(peer)
    #expect(try phone.waitForEnd(of: peer, after: start) == nil)
    // And again.
    try phone.connect(peer)
  }

  @Test(
    "a peripheral is known to processes that have not heard it", arguments: ["bench 1", "né-_9", "a%20b"])
  func remembersPeripherals(_ name: String) throws {
    let folder = AirFolder()
    let peer = PeerID(adapterName: name)
    let phone = TestPhone(try folder.radio("phone"))
    #expect(phone.client.knownPeers([peer]) == [])
    do {
      let device = TestDevice(try folder.radio(name))
      _ = try device.started().get()
      #expect(phone.client.knownPeers([PeerID(UUID()), peer]) == [KnownPeer(id: peer, name: name)])
    }
    // Also after it has gone, as a host remembers a device that is switched off.
    let later = TestPhone(try folder.radio("later"))
    #expect(later.client.knownPeers([peer]) == [KnownPeer(id: peer, name: name)])
    #expect(later.client.knownPeers([later.radio.peerID]) == [])
  }

  @Test("a pending connection waits until the peripheral appears")
  func pendingConnection() throws {
    let folder = AirFolder()
    let phone = TestPhone(try folder.radio("phone"))
    let peer = PeerID(adapterName: "late")
    phone.client.connect(peer)
    let other = TestDevice(try folder.radio("other"))
    _ = try other.started().get()
    let device = TestDevice(try folder.radio("late"))
    #expect(device.radio.peerID == peer)
    try phone.waitForLink(to: peer)
  }

  @Test("a name is taken once, its holder is named, and its end sets it free")
  func nameIsTakenOnce() throws {
    let folder = AirFolder()
    do {
      let first = TestDevice(try folder.radio("bench"))
      try first.started().get()
      let second = TestDevice(try folder.radio("bench"))
      let error = #expect(throws: RadioError.self) { try second.started().get() }
      #expect(error?.message.contains("bench is taken in \(folder.path) by process \(getpid())") == true)
      let third = try folder.radio("bench")
      let failure = #expect(throws: VirtualAirError.self) { try third.takeName() }
      #expect(failure?.code == .nameTaken)
    }
    let next = try folder.radio("bench")
    try next.takeName()
    try next.takeName()
  }

  private static let flockPath = "/usr/bin/flock"

  @Test(
    "a process that is killed sets its name free",
    .enabled(if: FileManager.default.isExecutableFile(atPath: flockPath), "flock(1) is not installed"))
  func killedProcess() async throws {
    let folder = AirFolder()
    let radio = try folder.radio("bench")
    let process = try ChildProcess(
      Self.flockPath, ["-F", folder.path + "/bench.lock", "sh", "-c", "echo locked; exec sleep 600"])
    #expect(await process.line { _ in true } == "locked")
    #expect(throws: VirtualAirError.self) { try radio.takeName() }
    process.send(signal: SIGKILL)
    #expect(await process.ending() == .signal(SIGKILL))
    try radio.takeName()
  }

  @Test("a socket that a dead process left is neither found nor in the way")
  func staleSocket() throws {
    let folder = AirFolder()
    let radio = try folder.radio("bench")
    do {
      let stale = try UnixSocket.make()
      try UnixSocket.bind(stale, path: folder.path + "/bench.sock")
    }
    let phone = TestPhone(try folder.radio("phone"))
    phone.client.startScan(ScanFilter())
    let other = TestDevice(try folder.radio("other"))
    _ = try phone.sighting(of: other.radio.peerID)
    #expect(phone.log.all.count { if case .discovered = $0 { true } else { false } } == 1)
    let device = TestDevice(radio)
    _ = try phone.sighting(of: device.radio.peerID)
  }

  @Test(
    "a peripheral's process that ends without a word: the link is lost",
    arguments: [VirtualClock.Mode.realTime, .unpaced])
  func peripheralDies(_ mode: VirtualClock.Mode) throws {
    let folder = AirFolder(mode)
    let phone = TestPhone(try folder.radio("phone"))
    let peer = PeerID(adapterName: "bench")
    do {
      let device = TestDevice(try folder.radio("bench"))
      try phone.connect(peer)
      withExtendedLifetime(device) {}
    }
    #expect(try phone.waitForEnd(of: peer)?.code == .supervisionTimeout)
    // Started again, it is the same peer.
    let device = TestDevice(try folder.radio("bench"))
    try phone.connect(peer)
    withExtendedLifetime(device) {}
  }

  @Test("a central's process that ends without a word: the peripheral can be connected to again")
  func centralDies() throws {
    let folder = AirFolder()
    let device = TestDevice(try folder.radio("bench"))
    for _ in 0..<3 {
      let phone = TestPhone(try folder.radio("phone"))
      try phone.connect(device.radio.peerID)
    }
  }

  @Test("out of reach ends links and hides; back in reach it is found again")
  func reach() throws {
    let folder = AirFolder()
    let device = TestDevice(try folder.radio("bench"))
    let phone = TestPhone(try folder.radio("phone"))
    let peer = device.radio.peerID
    try phone.connect(peer)
    device.radio.setInReach(false)
    #expect(try phone.waitForEnd(of: peer)?.code == .supervisionTimeout)
    let start = phone.log.all.count
    phone.client.connect(peer)
    device.radio.setInReach(true)
    try phone.waitForLink(to: peer, after: start)
    phone.radio.setInReach(false)
    #expect(try phone.waitForEnd(of: peer, after: start)?.code == .supervisionTimeout)
  }

  @Test(
    "directories that cannot be an air are refused in words",
    arguments: [
      ("", "virtual:DIR"), ("/dev/null", "/dev/null"), ("/proc/nothing/here", "/proc/nothing/here"),
    ])
  func badDirectory(_ path: String, _ part: String) {
    let error = #expect(throws: VirtualAirError.self) {
      try VirtualRadio(directory: path, name: "x", clock: VirtualClock(.unpaced))
    }
    #expect(error?.code == .directory)
    #expect(error?.message.contains(part) == true)
  }

  @Test("names without length, too long ones and lock-step clocks are refused")
  func badArguments() {
    let folder = AirFolder()
    for name in ["", String(repeating: "x", count: 249)] {
      let error = #expect(throws: VirtualAirError.self) { try folder.radio(name) }
      #expect(error?.code == .badName)
    }
    let error = #expect(throws: VirtualAirError.self) {
      try VirtualRadio(directory: folder.path, name: "x", clock: VirtualClock(.lockStep))
    }
    #expect(error?.code == .clock)
  }

  @Test("words name a directory and settings")
  func words() throws {
    let folder = AirFolder()
    let radio = try VirtualRadio(
      words: "virtual:\(folder.path)?name=bench 7&clock=unpaced&link=mtu=100,rssi=-77&seed=3&fault=drop@50%")
    #expect(radio.name == "virtual:\(folder.path)")
    #expect((radio.clock as? VirtualClock)?.mode == .unpaced)
    let device = TestDevice(radio)
    let phone = TestPhone(try VirtualRadio(words: "virtual:\(folder.path)"))
    phone.client.startScan(ScanFilter())
    let sighting = try phone.sighting(of: PeerID(adapterName: "bench 7"))
    #expect(sighting.rssi == -77)
    withExtendedLifetime(device) {}
  }

  @Test(
    "wrong words are named",
    arguments: [
      ("virtual:", "the directory of a virtual air has no name; write virtual:DIR"),
      (
        "virtual:/tmp/air?nmae=x",
        "nmae: no such key (did you mean name?); there are name, clock, link, fault, seed, permission"
      ),
      ("virtual:/tmp/air?clock=lockstep", "clock=lockstep: must be real or unpaced"),
      ("virtual:/tmp/air?seed=-1", "seed=-1: is not a whole number"),
      ("virtual:/tmp/air?link=mtu=9", "mtu=9: must be 23...517"),
      ("virtual:/tmp/air?", "\"\": an item is empty; items are key=value"),
    ])
  func wrongWords(_ words: String, _ message: String) {
    let error = #expect(throws: (any Error).self) { try VirtualRadio(words: words) }
    #expect(error.map { "\($0)" } == message)
  }

  @Test("two centrals of one name are two centrals")
  func centralsOfOneName() throws {
    let folder = AirFolder()
    let device = TestDevice(try folder.radio("bench"))
    let phones = try (0..<2).map { _ in TestPhone(try folder.radio("phone")) }
    for phone in phones { try phone.connect(device.radio.peerID) }
    for phone in phones { _ = try phone.findCharacteristic(of: device.radio.peerID) }
  }

  @Test("faults of either side are played once over all links", arguments: ["bench", "phone"])
  func faults(_ owner: String) throws {
    let folder = AirFolder()
    let plan = "drop@2000,hangup@4000"
    let device = TestDevice(try folder.radio("bench", faults: owner == "bench" ? plan : ""))
    let phone = TestPhone(try folder.radio("phone", faults: owner == "phone" ? plan : ""))
    let peer = device.radio.peerID
    var ends: [RadioError.Code?] = []
    while ends.count < 2 {
      let began = folder.clock.now
      try phone.connect(peer)
      let handle = try phone.findCharacteristic(of: peer).handle
      let start = phone.log.all.count
      var outcome = WriteOutcome.accepted
      while outcome != .notConnected {
        let seen = phone.log.all.count
        outcome = phone.client.writeWithoutResponse(Data(count: 20), to: handle, of: peer)
        guard outcome == .notReady else { continue }
        try phone.log.expect("room or the end", after: max(seen - 1, start)) { event in
          switch event {
          case .readyToWrite, .disconnected: ()
          default: nil
          }
        }
      }
      let end = try phone.waitForEnd(of: peer, after: start)?.code
      // A machine that stands still for so long loses links by itself.
      if end == .supervisionTimeout, folder.clock.now - began >= AirLink.longestStall { continue }
      ends.append(end)
    }
    #expect(ends == [.supervisionTimeout, .peerTerminated])
    try phone.connect(peer)
    let handle = try phone.findCharacteristic(of: peer).handle
    let written = device.written.count
    for _ in 0..<20 { _ = phone.client.writeWithoutResponse(Data(count: 20), to: handle, of: peer) }
    _ = try device.log.expect("more values") { _ in device.written.count >= written + 8 ? true : nil }
  }

  @Test("a fault at a share waits until the size is told")
  func share() throws {
    let folder = AirFolder()
    let device = TestDevice(try folder.radio("bench", faults: "hangup@50%"))
    let phone = TestPhone(try folder.radio("phone"))
    let peer = device.radio.peerID
    try phone.connect(peer)
    let handle = try phone.findCharacteristic(of: peer).handle
    #expect(phone.client.writeWithoutResponse(Data(count: 20), to: handle, of: peer) == .accepted)
    _ = try device.log.expect("the value") { _ in device.written.count == 1 ? true : nil }
    device.radio.resolveFaults(totalBytes: 80)
    #expect(phone.client.writeWithoutResponse(Data(count: 20), to: handle, of: peer) == .accepted)
    #expect(try phone.waitForEnd(of: peer)?.code == .peerTerminated)
  }
}
