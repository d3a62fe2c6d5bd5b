import CoreBluetooth
import Testing

@Suite struct CBUUIDTests {
  @Test(arguments: [
    ("180D", "180D", 2), ("180d", "180D", 2), ("0000180D", "0000180D", 4),
    ("0000180d-0000-1000-8000-00805f9b34fb", "0000180D-0000-1000-8000-00805F9B34FB", 16),
    ("12345678-1234-1234-1234-123456789ABC", "12345678-1234-1234-1234-123456789ABC", 16),
  ])
  func keepsItsForm(text: String, printed: String, count: Int) {
    let uuid = CBUUID(string: text)
    #expect(uuid.uuidString == printed)
    #expect("\(uuid)" == printed)
    #expect(uuid.data.count == count)
    #expect(CBUUID(data: uuid.data) == uuid)
  }

  @Test(arguments: ["180D", "0000180D", "0000180D-0000-1000-8000-00805F9B34FB"])
  func equalsAndHashesLikeItsExpansion(text: String) {
    let short = CBUUID(string: "180D")
    let uuid = CBUUID(string: text)
    #expect(uuid == short)
    #expect(uuid.hash == short.hash)
    #expect([short: 1][uuid] == 1)
    #expect((uuid as NSObject) == short)
    #expect(uuid != CBUUID(string: "180E"))
    #expect(!uuid.isEqual("180D"))
  }

  @Test func matchesInASwitch() {
    switch CBUUID(string: "00002A37-0000-1000-8000-00805F9B34FB") {
    case CBUUID(string: "2A37"): break
    default: Issue.record("the short form did not match")
    }
  }

  @Test func convertsToAndFromFoundation() throws {
    let foundation = try #require(UUID(uuidString: "12345678-1234-1234-1234-123456789ABC"))
    #expect(CBUUID(nsuuid: foundation).uuidString == foundation.uuidString)
    let uuid = CBUUID(string: "2A37")
    #expect(uuid.copy() as? CBUUID === uuid)
  }

  @Test func trapsOnWhatIsNoUUID() async {
    await #expect(processExitsWith: .failure) { _ = CBUUID(string: "18") }
    await #expect(processExitsWith: .failure) { _ = CBUUID(string: "12345678-1234-1234-1234_123456789ABC") }
    await #expect(processExitsWith: .failure) { _ = CBUUID(string: "18G0") }
    await #expect(processExitsWith: .failure) { _ = CBUUID(data: Data([1, 2, 3])) }
  }
}
