import DBus
import Foundation
import Testing

@Suite struct AddressTests {
  @Test(arguments: [
    ("unix:path=PLACE", true), ("unix:guid=00,path=PLACE", true), ("unix:path=PLACE%2Fnone", false),
    ("unix:path=/nonexistent/bus", false), ("unix:path=/nonexistent/bus;unix:path=PLACE,guid=00", true),
    ("unix:path=%zz", false), ("unix:abstract=somewhere", true), ("tcp:host=localhost,port=1", true),
    ("", false), ("nonsense", false),
  ])
  func presenceIsThatOfTheSocket(text: String, isPresent: Bool) throws {
    let place = FileManager.default.temporaryDirectory.appending(path: "bus \(UUID())")
    try Data().write(to: place)
    defer { try? FileManager.default.removeItem(at: place) }
    let text = text.replacing("PLACE", with: place.path.replacing(" ", with: "%20"))
    #expect(DBusAddress.address(text).isPresent() == isPresent)
    #expect(
      DBusAddress.system.isPresent(environment: ["DBUS_SYSTEM_BUS_ADDRESS": text])
        == (isPresent || text.isEmpty && DBusAddress.system.isPresent(environment: [:])))
  }

  @Test func withoutAnAddressThereIsNoSession() {
    #expect(!DBusAddress.session.isPresent(environment: [:]))
  }
}
