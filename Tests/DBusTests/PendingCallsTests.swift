import Testing

@testable import DBus

@Suite("Pending calls")
struct PendingCallsTests {
  @Test("Calls expire in the order of their deadlines, answered ones never")
  func expiry() {
    var calls = PendingCalls<String>()
    calls.insert(1, destination: nil, deadline: .seconds(5), "five")
    calls.insert(2, destination: nil, deadline: .seconds(2), "two")
    calls.insert(3, destination: nil, deadline: nil, "never")
    calls.insert(4, destination: nil, deadline: .seconds(5), "five too")
    #expect(calls.nextDeadline == .seconds(2))
    #expect(calls.take(2) == "two")
    #expect(calls.expire(.seconds(4)) == [])
    #expect(calls.nextDeadline == .seconds(5))
    #expect(calls.expire(.seconds(5)) == ["five", "five too"])
    #expect(calls.nextDeadline == nil)
    #expect(calls.count == 1)
    #expect(calls.removeAll() == ["never"])
  }

  @Test(
    "Who may answer",
    arguments: [
      (":1.5", ":1.5", true), (":1.5", DBusWellKnown.bus, true), (":1.5", ":1.6", false),
      ("org.x", ":1.6", true), (nil, ":1.6", true), (":1.5", nil, false),
    ] as [(String?, String?, Bool)])
  func senders(_ destination: String?, _ sender: String?, _ isTaken: Bool) {
    var calls = PendingCalls<Int>()
    calls.insert(9, destination: destination, deadline: nil, 1)
    #expect((calls.take(9, from: sender) != nil) == isTaken)
    #expect(calls.take(8, from: sender) == nil)
    #expect(calls.count == (isTaken ? 0 : 1))
  }
}
