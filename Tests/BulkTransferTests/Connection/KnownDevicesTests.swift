import Foundation
import TestSupport
import Testing

@testable import BulkTransfer

@Suite("Known devices")
struct KnownDevicesTests {
  private let folder: TemporaryFolder
  private let store: KnownDevices

  init() throws {
    folder = TemporaryFolder()
    store = KnownDevices(directory: folder.path("state/bluehaul"))
  }

  private func device(_ number: UInt8, _ name: String? = nil, at seconds: Double = 0) -> KnownDevices.Device {
    KnownDevices.Device(
      identifier: UUID(uuid: (number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)), name: name,
      lastConnected: Date(timeIntervalSince1970: 1_800_000_000 + seconds), services: ["180D"])
  }

  @Test("are kept, the last connected first, and replaced by what is newer")
  func remembers() throws {
    #expect(try store.devices().isEmpty)
    #expect(try store.remember(device(1, "one")) == nil)
    var other = device(3, "three", at: -60)
    other.ownName = "Sensor Hub"
    try store.remember(other)
    #expect(try store.device(for: .name("three")) == other)
    _ = try store.forget { $0 == other }
    try store.remember(device(2, nil, at: 60))
    try store.remember(device(1, "uno", at: 120))
    #expect(try store.devices() == [device(1, "uno", at: 120), device(2, nil, at: 60)])
    #expect(try store.device(for: .name("uno")) == device(1, "uno", at: 120))
    #expect(try store.device(for: .name("one")) == nil)
    #expect(try store.device(for: .any)?.name == "uno")
    #expect(try store.device(for: .identifier(device(2).identifier))?.identifier == device(2).identifier)
  }

  @Test("a name that has moved leads to the device that had it last")
  func moved() throws {
    try store.remember(device(1, "bench-1"))
    try store.remember(device(2, "bench-1", at: 60))
    #expect(try store.device(for: .name("bench-1"))?.identifier == device(2).identifier)
  }

  @Test("are forgotten, and only those that are meant")
  func forgets() throws {
    try store.remember(device(1, "one"))
    try store.remember(device(2, "two"))
    #expect(try store.forget { $0.name == "one" } == [device(1, "one")])
    #expect(try store.forget { $0.name == "one" }.isEmpty)
    #expect(try store.devices() == [device(2, "two")])
  }

  @Test("are bounded in number and size, whatever is remembered")
  func bounded() throws {
    var long = device(0, String(repeating: "\u{1F4E1}", count: 10_000))
    long.services = (0..<1000).map { "service \($0)" }
    try store.remember(long)
    #expect(try store.devices().first?.name.map { $0.utf8.count <= 248 } == true)
    for number in 1...200 { try store.remember(device(UInt8(number), nil, at: Double(number))) }
    let devices = try store.devices()
    #expect(devices.count == KnownDevices.most)
    #expect(devices.last == device(137, nil, at: 137))
  }

  @Test(
    "a file that is torn, foreign or of another version is reported, set aside and begun anew",
    arguments: [
      "", "{", "[]", "null", #"{"format":"bluehaul-journal","version":1,"devices":[]}"#,
      #"{"format":"bluehaul-devices","version":2,"devices":[]}"#,
      #"{"format":"bluehaul-devices","version":1,"devices":[{"identifier":"x"}]}"#,
      #"{"format":"bluehaul-devices","version":1,"devices":{}}"#, String(repeating: " ", count: 1 << 21),
    ])
  func damaged(text: String) throws {
    try store.remember(device(1))
    try Data(text.utf8).write(to: URL(filePath: store.path))
    let error = #expect(throws: TransferError.self) { try store.devices() }
    #expect(error?.code == .damagedState && error?.message.contains("devices.json") == true)
    let told = try store.remember(device(2))
    #expect(told?.code == .damagedState && told?.advice?.contains("devices.json.old") == true)
    #expect(try store.devices() == [device(2)])
    #expect(folder.contents("state/bluehaul/devices.json.old") == Data(text.utf8))
  }

  @Test("every cut of a file is either whole or damaged")
  func torn() throws {
    try store.remember(device(1, "one"))
    let whole = try #require(folder.contents("state/bluehaul/devices.json"))
    for count in 0..<(whole.count - 1) {
      try whole.prefix(count).write(to: URL(filePath: store.path))
      #expect(throws: TransferError.self) { try store.devices() }
    }
  }

  @Test("is the form that the document gives")
  func documented() throws {
    let text = try #require(block(with: "bluehaul-devices", in: try document("manifest.md")))
    try store.remember(device(1))
    try Data(text.utf8).write(to: URL(filePath: store.path))
    let device = try #require(try store.devices().first)
    #expect(device.name == "bench-1")
    try store.remember(device)
    #expect(folder.contents("state/bluehaul/devices.json") == Data(text.utf8))
  }

  @Test("a device is claimed by one at a time, and free when the claim goes")
  func claims() throws {
    var claim: DeviceClaim? = try store.claim(device(1).identifier, name: "bench-1")
    let error = #expect(throws: TransferError.self) { try store.claim(device(1).identifier, name: "bench-1") }
    #expect(error?.code == .locked && error?.message.contains("bench-1") == true)
    #expect(error?.message.contains("\(ProcessInfo.processInfo.processIdentifier)") == true)
    withExtendedLifetime(claim) {}
    _ = try store.claim(device(2).identifier)
    claim = nil
    _ = try store.claim(device(1).identifier)
  }

  @Test("are no journals of transfers, though they lie in the same folder")
  func besideJournals() throws {
    try store.remember(device(1))
    #expect(try TransferJournal(directory: store.directory).entries().isEmpty)
  }
}
