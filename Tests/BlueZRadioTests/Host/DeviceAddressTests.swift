import Foundation
import Radio
import Testing

@testable import BlueZRadio

@Suite("Device addresses")
struct DeviceAddressTests {
  @Test(
    "an address is read as it is written, with its first octet first",
    arguments: ["00:AA:01:01:00:01", "FF:FF:FF:FF:FF:FF", "C0:00:00:00:00:0a"])
  func reading(text: String) throws {
    let address = try #require(DeviceAddress(text, kind: .random))
    #expect(address.description == text.uppercased())
    #expect(address.octets.first == UInt8(text.prefix(2), radix: 16))
  }

  @Test(
    "what is no address is refused",
    arguments: [
      "", "00:AA:01:01:00", "00:AA:01:01:00:01:02", "0:AA:01:01:00:01", "00-AA-01-01-00-01",
      "GG:AA:01:01:00:01", "+1:AA:01:01:00:01",
    ])
  func refusing(text: String) {
    #expect(DeviceAddress(text, kind: .public) == nil)
  }

  @Test(
    "an identifier can be taken apart into the address, and differs by its kind",
    arguments: [DeviceAddress.Kind.public, .random])
  func identifier(kind: DeviceAddress.Kind) throws {
    let address = try #require(DeviceAddress("00:AA:01:01:00:01", kind: kind))
    #expect(DeviceAddress(address.peer) == address)
    let other = DeviceAddress(value: address.value, kind: kind == .public ? .random : .public)
    #expect(other.peer != address.peer)
  }

  @Test("an identifier that some other host has made is no address")
  func foreign() {
    #expect(DeviceAddress(PeerID(UUID())) == nil)
  }
}
