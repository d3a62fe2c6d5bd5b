import ChildProcess
@_spi(Streams) import CoreBluetooth
import Dispatch
import Foundation
import Locking
import RealStack
import Testing

/// Channels of Core Bluetooth on the kernel.
@Suite(
  "Channels of Core Bluetooth on bluetoothd", .serialized, .timeLimit(.minutes(30)),
  .enabled(if: Guest.isHere, Comment(rawValue: Guest.elsewhere)))
struct HostChannelTests {
  init() async throws {
    try await Guest.repeatAdvertising(of: "hci1")
    try await Adapters.prepare()
  }

  private func octets(_ count: Int, _ factor: Int) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* factor &+ $0 >> 8) })
  }

  private func open(_ psm: CBL2CAPPSM, _ phone: Phone, _ peripheral: CBPeripheral) async throws -> (
    CBL2CAPChannel?, Failure?
  ) {
    peripheral.openL2CAPChannel(psm)
    return try await phone.events.first {
      if case .channel(let channel, let failure) = $0 { (channel, failure) } else { nil }
    }
  }

  private func accepted(_ gadget: Gadget) async throws -> CBL2CAPChannel {
    let channel = try await gadget.events.first {
      if case .opened(let channel, nil) = $0 { Optional(channel) } else { nil }
    }
    return try #require(channel)
  }

  @Test("a PSM that nobody has is an error, and two channels to one PSM are two")
  func psms() async throws {
    let gadget = try await Gadget.start()
    let psm = try await gadget.publishChannel()
    let phone = try await Phone.start()
    let peripheral = try await phone.connect(Gadget.service)
    for bad in [0, psm + 1, 0xFFFF] {
      let (channel, failure) = try await open(bad, phone, peripheral)
      #expect(channel == nil && failure != nil, "PSM \(bad)")
    }
    var pairs: [(here: CBL2CAPChannel, there: CBL2CAPChannel)] = []
    for _ in 1...2 {
      let (channel, failure) = try await open(psm, phone, peripheral)
      #expect(failure == nil)
      let here = try #require(channel)
      pairs.append((here, try await accepted(gadget)))
    }
    #expect(pairs.allSatisfy { $0.here.psm == psm })
    // A stream that is not open takes and gives nothing, and can be opened afterwards.
    for pair in pairs {
      let octet: [UInt8] = [1]
      #expect(unsafe pair.here.outputStream.write(octet, maxLength: 1) <= 0)
      var buffer: [UInt8] = [0]
      #expect(unsafe pair.here.inputStream.read(&buffer, maxLength: 1) <= 0)
    }
    for (number, pair) in pairs.enumerated() {
      let here = try #require(L2CAPByteChannel(pair.here))
      let there = try #require(L2CAPByteChannel(pair.there))
      try await here.write(Data([UInt8(number)]))
      #expect(try await there.read(upTo: 8) == Data([UInt8(number)]))
      here.close()
      #expect(try await there.read(upTo: 8) == nil)
    }
    try await phone.disconnect(peripheral)
  }

  @Test("a megabyte each way at the same time arrives whole, whatever is read at a time")
  func bothWays() async throws {
    let gadget = try await Gadget.start()
    let psm = try await gadget.publishChannel()
    let phone = try await Phone.start()
    let peripheral = try await phone.connect(Gadget.service)
    let channel = try #require(try await open(psm, phone, peripheral).0)
    let other = try await accepted(gadget)
    let (here, there) = (try #require(L2CAPByteChannel(channel)), try #require(L2CAPByteChannel(other)))
    let (up, down) = (octets(1 << 20, 31), octets(1 << 20, 11))
    @Sendable func receive(_ count: Int, from channel: L2CAPByteChannel) async throws -> Data {
      var data = Data()
      // Odd lengths, so that SDUs are cut anywhere.
      while data.count < count, let part = try await channel.read(upTo: 1 + data.count % 1001) {
        data += part
      }
      return data
    }
    async let sentUp: Void = here.write(up)
    async let sentDown: Void = there.write(down)
    async let gotUp = receive(up.count, from: there)
    async let gotDown = receive(down.count, from: here)
    #expect(try await gotUp == up)
    #expect(try await gotDown == down)
    try await sentUp
    try await sentDown
    here.close()
    try await phone.disconnect(peripheral)
  }

  @Test("a write takes what there is room for; the rest goes with the events that follow")
  func longWrites() async throws {
    let gadget = try await Gadget.start()
    let psm = try await gadget.publishChannel()
    let phone = try await Phone.start()
    let peripheral = try await phone.connect(Gadget.service)
    let channel = try #require(try await open(psm, phone, peripheral).0)
    let other = try await accepted(gadget)
    let there = try #require(L2CAPByteChannel(other))
    let data = octets(1 << 20, 31)
    let writer = LongWriter(data)
    channel.setEventQueue(DispatchQueue(label: "writer")) { stream, event in writer.handle(event, stream) }
    channel.inputStream.open()
    channel.outputStream.open()
    var received = Data()
    while received.count < data.count, let part = try await there.read(upTo: 4096) { received += part }
    #expect(received == data)
    let taken = writer.taken
    #expect(taken.first.map { $0 > 0 && $0 < LongWriter.length } == true, "\(taken.prefix(8))")
    // No event comes in vain.
    #expect(taken.allSatisfy { $0 > 0 }, "\(taken.count)")
    try await phone.disconnect(peripheral)
    withExtendedLifetime(channel) {}
  }
}

/// Writes as much as it can with each event.
private final class LongWriter: Sendable {
  static let length = 200_000

  private let data: Data
  private let counts = PosixMutex<[Int]>([])

  init(_ data: Data) { self.data = data }

  /// What each write has taken.
  var taken: [Int] { counts.withLock { $0 } }

  func handle(_ event: Stream.Event, _ stream: Stream) {
    guard event == .hasSpaceAvailable, let output = stream as? OutputStream else { return }
    counts.withLock { counts in
      let rest = [UInt8](data.dropFirst(counts.reduce(0, +)).prefix(Self.length))
      guard !rest.isEmpty else { return }
      counts.append(unsafe output.write(rest, maxLength: rest.count))
    }
  }
}
