import Foundation
import Radio
import Testing

@Suite("Bluetooth UUIDs")
struct BluetoothUUIDTests {
  @Test("a short UUID equals its expansion over the base", arguments: [UInt16(0), 0x180D, 0x2A37, 0xFFFF])
  func expansion(short: UInt16) throws {
    let hex = String(short, radix: 16)
    let text = "0000" + String(repeating: "0", count: 4 - hex.count) + hex + "-0000-1000-8000-00805F9B34FB"
    let long = BluetoothUUID(try #require(UUID(uuidString: text)))
    #expect(BluetoothUUID(short) == long)
    #expect(BluetoothUUID(short).hashValue == long.hashValue)
    #expect(long.short == short)
    #expect(long.littleEndianBytes == [UInt8(truncatingIfNeeded: short), UInt8(short >> 8)])
  }

  @Test(
    "octets survive both orders",
    arguments: ["8D53DC1D-1DB7-4CD3-868B-8A527460AA84", "0000180D-0000-1000-8000-00805F9B34FC"])
  func octets(text: String) throws {
    let uuid = BluetoothUUID(try #require(UUID(uuidString: text)))
    #expect(uuid.description == text)
    #expect(uuid.short == nil)
    #expect(BluetoothUUID(bigEndian: uuid.bigEndianBytes) == uuid)
    #expect(BluetoothUUID(littleEndian: uuid.littleEndianBytes) == uuid)
  }

  @Test("any other count of octets is refused", arguments: [0, 1, 3, 5, 15, 17, 32])
  func lengths(count: Int) {
    #expect(BluetoothUUID(bigEndian: [UInt8](repeating: 1, count: count)) == nil)
  }

  @Test("32-bit aliases have no 16-bit form")
  func wide() {
    let wide = BluetoothUUID(UInt32(0x0001_180D))
    #expect(wide.short == nil)
    #expect(wide.description == "0001180D-0000-1000-8000-00805F9B34FB")
    #expect(BluetoothUUID(UInt16(0x180D)).description == "180D")
  }
}
