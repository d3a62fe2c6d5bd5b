import Dispatch
import Foundation
import Radio
import Testing

@testable import VirtualRadio

/// Two programs of one host on one link.
@Suite("Shared links") struct SharedLinkTests {
  /// The second program: a central client that writes down what it is told.
  private final class Other {
    let events = AirLog<CentralEvent>()
    let radio: any CentralRadio
    private let inbox: EventInbox<CentralEvent>
    private var lastRequest: UInt64 = 1_000

    init(_ rig: AirRig) throws {
      let events = events
      let inbox = EventInbox<CentralEvent>(queue: DispatchQueue(label: "other"), clock: rig.clock) {
        events.take($0)
      }
      self.inbox = inbox
      radio = rig.phone.makeCentral { inbox.post($0) }
      radio.connect(rig.peer)
      try rig.run { events.all.contains { if case .connected = $0 { true } else { false } } }
    }

    /// Asks and returns at once.
    func ask(_ request: GATTRequest, _ rig: AirRig) -> RequestID {
      lastRequest += 1
      let id = RequestID(lastRequest)
      radio.request(request, of: rig.peer, id: id)
      return id
    }

    func answer(_ id: RequestID) -> Result<GATTReply, GATTFailure>? {
      for case .completed(id, _, let result) in events.all { return result }
      return nil
    }

    var values: [Data] {
      events.all.compactMap { if case .notified(_, _, let value) = $0 { value } else { nil } }
    }
  }

  private static func values(_ rig: AirRig) -> [Data] {
    rig.centralEvents.all.compactMap { if case .notified(_, _, let value) = $0 { value } else { nil } }
  }

  /// The device notifies and does not indicate: who has asked for indications was refused, and gets nothing of what others get.
  @Test(arguments: [true, false])
  func aRefusedSubscriptionGetsNoValues(isRefusedFirst: Bool) throws {
    let rig = AirRig()
    let pushes = try rig.connectAndFind(0xFFF2)
    let other = try Other(rig)
    if !isRefusedFirst { try rig.ask(.setNotify(pushes, .notify)) }
    let id = other.ask(.setNotify(pushes, .indicate), rig)
    try rig.run { other.answer(id) != nil }
    guard case .failure(.att(.improperlyConfigured)) = try #require(other.answer(id)) else {
      throw Unexpected()
    }
    if isRefusedFirst { try rig.ask(.setNotify(pushes, .notify)) }
    #expect(rig.peripheral.notify(Data([7]), of: AirRig.pushes, to: nil))
    try rig.runToRest()
    #expect(Self.values(rig) == [Data([7])])
    #expect(other.values == [])
    // Nor does it count as a subscriber when the other one has had enough.
    try rig.ask(.setNotify(pushes, .none))
    try rig.runToRest()
    #expect(rig.peripheralEvents.all.contains { if case .unsubscribed = $0 { true } else { false } })
  }

  /// Refused for what it has asked last, a client keeps what it had before.
  @Test func aRefusedChangeChangesNothing() throws {
    let rig = AirRig()
    let pushes = try rig.connectAndFind(0xFFF2)
    let other = try Other(rig)
    let ids = [NotifyMode.notify, .indicate].map { other.ask(.setNotify(pushes, $0), rig) }
    try rig.run { ids.allSatisfy { other.answer($0) != nil } }
    #expect(rig.peripheral.notify(Data([1]), of: AirRig.pushes, to: nil))
    try rig.runToRest()
    #expect(other.values == [Data([1])])
    // What was asked for last counts, whatever the answers before it are.
    let later = [NotifyMode.indicate, .none].map { other.ask(.setNotify(pushes, $0), rig) }
    try rig.run { later.allSatisfy { other.answer($0) != nil } }
    #expect(rig.peripheral.notify(Data([2]), of: AirRig.pushes, to: nil))
    try rig.runToRest()
    #expect(other.values == [Data([1])])
  }

  @Test func identitiesThatChangeForEverAreForgotten() {
    var memory = PeerMemory()
    let (linked, first) = (PeerID(UUID()), PeerID(UUID()))
    memory.update(linked, { $0.name = "linked" }) { _ in false }
    memory.update(first, { $0.name = "first" }) { $0 == linked }
    for number in 1...3 * PeerMemory.capacity {
      let peer = PeerID(UUID())
      memory.update(peer, { $0.name = "\(number)" }) { $0 == linked }
      #expect(memory[peer]?.name == "\(number)")
      if number == PeerMemory.capacity / 2 - 3 { #expect(memory[first]?.name == "first") }
    }
    #expect(memory.count <= PeerMemory.capacity + 1)
    #expect(memory[linked]?.name == "linked")
    #expect(memory[first] == nil)
    // One that is heard again and again stays.
    let steady = PeerID(UUID())
    memory.update(steady, { $0.name = "steady" }) { _ in false }
    for _ in 1...5 {
      for _ in 1..<PeerMemory.capacity / 2 { memory.update(PeerID(UUID()), { _ in }) { _ in false } }
      memory.update(steady, { $0.isShown = true }) { _ in false }
    }
    #expect(memory[steady]?.name == "steady")
  }
}
