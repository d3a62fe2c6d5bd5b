import Foundation
import Radio
import Testing

@testable import VirtualRadio

@Suite("Messages of the virtual air") struct AirMessageTests {
  static let samples: [AirMessage] = [
    .hello(version: 1, name: "bench-1"),
    .hello(version: 0xFFFF, name: String(repeating: "ä", count: 124)),
    .observe,
    .connect(LinkParameters()),
    .advertisement(Advertisement(), rssi: -127, isConnectable: false),
    .advertisement(
      Advertisement(
        localName: "Gerät 1", services: [BluetoothUUID(UInt16(0x180A)), BluetoothUUID(UUID())],
        solicitedServices: [BluetoothUUID(UInt32(0x1234_5678))], overflowServices: [BluetoothUUID(UUID())],
        serviceData: [BluetoothUUID(UInt16(0xFE59)): Data([1, 2, 3]), BluetoothUUID(UUID()): Data()],
        manufacturerData: Data([0x59, 0, 7]), txPower: -12),
      rssi: 20, isConnectable: true),
    .accepted(
      LinkParameters(phy: .codedS8, dataLength: 27, packetErrorRate: 0.25, mtuExchangeDelay: .seconds(1))),
    .refused(.alreadyLinked, text: "there is a link already"),
    .frame([1]), .frame([UInt8](repeating: 0xA5, count: 65_539)),
    .completed(0), .completed(.max), .terminate,
    .ended(.supervisionTimeout), .ended(.terminated(by: .central)), .ended(.terminated(by: .peripheral)),
    .interval(units: 3200), .parameters(LinkParameters(phy: .le1M)), .mtu(517),
    .faults(
      FaultPlan([Fault(.link(.drop), .share(0.4)), Fault(.host(.freeze(nil)), .time(.seconds(2)))], seed: 7)),
  ]

  private func encoded(_ message: AirMessage) -> [UInt8] {
    var bytes: [UInt8] = []
    message.encode(into: &bytes)
    return bytes
  }

  @Test("each message is read as it was written", arguments: samples)
  func roundTrip(_ message: AirMessage) throws {
    var decoder = AirMessageDecoder()
    decoder.append(encoded(message))
    #expect(try decoder.next() == message)
    #expect(try decoder.next() == nil)
    #expect(decoder.pendingOctets == 0)
  }

  @Test("however the stream is cut", arguments: [1, 2, 3, 7, 64, 1000, 70_000])
  func slicing(_ size: Int) throws {
    let stream = Self.samples.flatMap { encoded($0) }
    var decoder = AirMessageDecoder()
    var messages: [AirMessage] = []
    for start in stride(from: 0, to: stream.count, by: size) {
      decoder.append(stream[start..<min(start + size, stream.count)])
      while let message = try decoder.next() { messages.append(message) }
    }
    #expect(messages == Self.samples)
  }

  @Test("a message that is cut short is never taken for a whole one", arguments: samples)
  func truncation(_ message: AirMessage) throws {
    let bytes = encoded(message)
    for length in Set([0, 1, 3, 4, 5, bytes.count - 1]) where length < bytes.count {
      var decoder = AirMessageDecoder()
      decoder.append(bytes[..<length])
      #expect(try decoder.next() == nil)
    }
  }

  @Test(
    "what is no message is refused",
    arguments: [
      [0, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF], [0x41, 0x00, 0x01, 0x00, 7],
      [1, 0, 0, 0, 0], [1, 0, 0, 0, 15], [1, 0, 0, 0, 200],
      // Hello without magic, with wrong magic, without a name, with broken UTF-8.
      [1, 0, 0, 0, 1], [8, 0, 0, 0, 1, 0x42, 0x48, 0x56, 0x42, 1, 0, 0x61],
      [7, 0, 0, 0, 1, 0x42, 0x48, 0x56, 0x41, 1, 0], [8, 0, 0, 0, 1, 0x42, 0x48, 0x56, 0x41, 1, 0, 0xFF],
      // Observe with a body; connect without words that are parameters.
      [2, 0, 0, 0, 2, 0], [4, 0, 0, 0, 3, 0x78, 0x3D, 0x31],
      // An advertisement whose field is longer than the rest, has a length of zero, or half a UUID.
      [6, 0, 0, 0, 4, 0, 0, 9, 0, 3], [5, 0, 0, 0, 4, 0, 0, 0, 0], [7, 0, 0, 0, 4, 0, 0, 2, 0, 3, 1],
      // An empty frame, unknown reasons, an MTU below 23.
      [1, 0, 0, 0, 7], [2, 0, 0, 0, 10, 3], [2, 0, 0, 0, 6, 0], [3, 0, 0, 0, 13, 22, 0],
    ] as [[UInt8]])
  func refuses(_ bytes: [UInt8]) {
    var decoder = AirMessageDecoder()
    decoder.append(bytes)
    #expect(throws: AirProtocolError.self) { try decoder.next() }
  }

  @Test("random bytes and damaged messages never trap", arguments: 0..<50 as Range<UInt64>)
  func damage(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for message in Self.samples {
      var bytes = encoded(message)
      for _ in 0..<3 {
        bytes[Int.random(in: 0..<min(bytes.count, 200), using: &generator)] = .random(
          in: 0...255, using: &generator)
      }
      var decoder = AirMessageDecoder()
      decoder.append(bytes)
      while let read = try? decoder.next() { _ = read }
    }
  }
}

@Suite("File names of the virtual air") struct AirFileNameTests {
  @Test(
    "names become file names",
    arguments: [
      ("bench-1", "bench-1"), ("A_b9", "A_b9"), ("two words", "two%20words"), ("../up", "%2E%2E%2Fup"),
      (".", "%2E"), ("ä", "%C3%A4"), ("a\u{0}b\n", "a%00b%0A"), ("100%", "100%25"), ("~", "%7E"),
    ])
  func escaping(_ name: String, _ file: String) {
    #expect(AirFileName(peripheral: name).base == file)
    #expect(AirFileName(socket: "\(file).sock") == AirFileName(peripheral: name))
  }

  @Test("long names stay apart and short enough for a socket's address")
  func longNames() {
    let names =
      (0..<50).map { String(repeating: "x", count: 200) + "\($0)" } + [String(repeating: "ü", count: 124)]
    let files = names.map { AirFileName(peripheral: $0) }
    #expect(Set(files).count == names.count)
    for file in files { #expect("/proc/self/fd/1234567/".utf8.count + file.newSocket.utf8.count < 108) }
  }

  @Test(
    "other files are no peripherals",
    arguments: [
      ".sock", ".bench.sock", "bench.lock", "bench", "sock", String(repeating: "x", count: 80) + ".sock",
    ])
  func otherFiles(_ file: String) {
    #expect(AirFileName(socket: file) == nil)
  }
}
