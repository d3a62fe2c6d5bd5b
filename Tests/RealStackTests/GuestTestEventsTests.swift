import Foundation
import RealStack
import Testing

/// What a guest's record of its tests comes to. The lines are shortened ones of the testing library.
@Suite("Events of tests in the guest") struct GuestTestEventsTests {
  private static func test(_ id: String, kind: String = "function") -> String {
    #"{"kind":"test","payload":{"id":"\#(id)","kind":"\#(kind)","name":"x"},"version":0}"#
  }

  private static func event(_ kind: String, _ id: String? = nil, _ rest: String = "", text: String = "said")
    -> String
  {
    let test = id.map { #","testID":"\#($0)""# } ?? ""
    return
      #"{"kind":"event","payload":{"kind":"\#(kind)","messages":[{"symbol":"x","text":"\#(text)"}]\#(test)\#(rest)},"version":0}"#
  }

  private static func issue(_ id: String?, _ facts: String) -> String {
    let place = #"{"_filePath":"/src/a.swift","column":4,"fileID":"T/a.swift","line":3}"#
    return event("issueRecorded", id, #","issue":{\#(facts),"sourceLocation":\#(place)}"#, text: "1 == 2")
  }

  private static let suite = "T.S"
  private static let one = "T.S/one()/a.swift:3:4"
  private static let two = "T.S/two(_:)/a.swift:9:4"
  private static let declared = [test(suite, kind: "suite"), test(one), test(two)]
  private static let start = [event("runStarted"), event("testStarted", suite)]
  private static let end = [event("testEnded", suite), event("runEnded", text: "2 tests passed")]

  private static func events(_ lines: [String]) -> GuestTestEvents {
    GuestTestEvents(Data((declared + start + lines).joined(separator: "\n").utf8))
  }

  private func failures(
    _ lines: [String], _ tests: [String] = ["T.S"], status: Int32 = 0
  ) -> [GuestTestEvents.Issue] {
    let logs = Logs(in: URL(filePath: "/nowhere"))
    let report = VirtualMachine.Report(status: status, phases: [], failedBoots: [], logs: logs)
    return GuestTestRun(tests).failures(.success(report), Self.events(lines))
  }

  private static let bothPass = [
    event("testStarted", one), event("testStarted", two), event("testEnded", one), event("testEnded", two),
  ]

  @Test("tests that have ended without an issue are success")
  func success() {
    let lines = Self.bothPass + Self.end
    #expect(Self.events(lines).ended == ["T.S/one()", "T.S/two(_:)"])
    #expect(Self.events(lines).summary == "2 tests passed")
    #expect(failures(lines).isEmpty)
    #expect(failures(lines, ["T.S/one()", "T.S/two"]).isEmpty)
  }

  @Test("an issue fails with its test, its words and its place")
  func recordedIssue() throws {
    let lines = Self.bothPass + [Self.issue(Self.two, #""isKnown":false"#)] + Self.end
    let failure = try #require(failures(lines, status: 1).first)
    #expect(failures(lines, status: 1).count == 1)
    #expect(failure.test == "T.S/two(_:)")
    #expect(failure.text == "1 == 2")
    #expect(failure.location?.fileID == "T/a.swift")
    #expect(failure.location?.line == 3)
  }

  @Test(
    "known issues and warnings fail nothing",
    arguments: [
      #""isKnown":true"#, #""isKnown":false,"severity":"warning""#, #""isKnown":false,"isFailure":false"#,
    ])
  func toleratedIssue(_ facts: String) {
    #expect(failures(Self.bothPass + [Self.issue(Self.one, facts)] + Self.end).isEmpty)
  }

  @Test("a run in which no test ran is a failure, and so is a suite without one")
  func nothingRan() {
    #expect(failures(Self.end).map(\.text) == ["no test of T.S has run"])
    #expect(
      failures(Self.bothPass + Self.end, ["T.S", "T.Other"]).map(\.text) == ["no test of T.Other has run"])
    // A name that another begins with is another.
    #expect(failures(Self.bothPass + Self.end, ["T.S/on"]).count == 1)
  }

  @Test("skipped tests have not run, and say why")
  func skipped() throws {
    let lines = [Self.event("testSkipped", Self.one, text: "not today"), Self.event("testSkipped", Self.two)]
    #expect(Self.events(lines + Self.end).skipped["T.S/one()"] == "not today")
    #expect(try #require(failures(lines + Self.end).first).text.contains("not today"))
  }

  @Test("a process that ends in the middle of a test fails with that test")
  func crash() {
    let lines = [Self.event("testStarted", Self.one), #"{"kind":"event","payl"#]
    let texts = failures(lines, status: 139).map(\.text)
    #expect(texts.contains("the tests ended with status 139"))
    #expect(texts.contains("T.S/one() has not ended"))
  }

  @Test("a status that no issue explains is a failure")
  func unexplainedStatus() {
    #expect(failures(Self.bothPass + Self.end, status: 1).map(\.text) == ["the tests ended with status 1"])
  }

  @Test("a machine that ended is a failure, whatever the tests have said")
  func machineEnded() {
    let events = Self.events(Self.bothPass + Self.end)
    let failure = VirtualMachine.Failure.timeLimit(.seconds(9), Logs(in: URL(filePath: "/nowhere")))
    #expect(GuestTestRun(["T.S"]).failures(.failure(failure), events).map(\.text) == ["\(failure)"])
  }
}
