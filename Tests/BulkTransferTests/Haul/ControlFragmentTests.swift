import BulkTransfer
import Foundation
import Testing

@Suite("Fragments of control messages", .timeLimit(.minutes(30)))
struct ControlFragmentTests {
  /// All fragments of what waits, each cut to the limit that `limits` gives in turn.
  private func drain(_ fragmenter: inout ControlFragmenter, limits: [Int]) -> [Data] {
    var fragments: [Data] = []
    while let fragment = fragmenter.next(limit: limits[fragments.count % limits.count]) {
      fragments.append(fragment)
    }
    return fragments
  }

  @Test("Messages of every length come back, whatever the limit", arguments: [2, 3, 20, 21, 182, 244, 514])
  func roundTrip(limit: Int) {
    var random = SeededGenerator(UInt64(limit))
    var fragmenter = ControlFragmenter()
    var assembler = ControlAssembler()
    for count in [1, 2, 19, 20, 21, 38, 39, 40, 243, 244, 511, 512] {
      let message = random.bytes(count)
      fragmenter.enqueue(message)
      let fragments = drain(&fragmenter, limits: [limit])
      #expect(fragments.allSatisfy { $0.count <= limit })
      let outcomes = fragments.map { assembler.receive($0) }
      #expect(outcomes.last == .message(message))
      #expect(outcomes.dropLast().allSatisfy { $0 == .incomplete })
    }
    #expect(fragmenter.isEmpty)
  }

  @Test("The limit may change between two fragments of a message")
  func changingLimit() {
    var fragmenter = ControlFragmenter()
    var assembler = ControlAssembler()
    let message = Data((0..<200).map { UInt8($0) })
    fragmenter.enqueue(message)
    let fragments = drain(&fragmenter, limits: [20, 244, 2, 60])
    #expect(fragments[0].count == 20)
    #expect(fragments.map { assembler.receive($0) }.last == .message(message))
  }

  @Test("A limit without room for a single octet gives nothing and loses nothing")
  func noRoom() {
    var fragmenter = ControlFragmenter()
    fragmenter.enqueue(Data([1, 2, 3]))
    for limit in [-1, 0, 1] { #expect(fragmenter.next(limit: limit) == nil) }
    #expect(fragmenter.next(limit: 20) != nil)
  }

  @Test("A lost, doubled or swapped fragment drops its message and no other", arguments: 0..<60)
  func damage(_ seed: UInt64) {
    var random = SeededGenerator(seed)
    var fragmenter = ControlFragmenter()
    var assembler = ControlAssembler()
    let messages = (0..<12).map { _ in random.bytes(random.pick(1...90)) }
    var sent = 0
    for (index, message) in messages.enumerated() {
      fragmenter.enqueue(message)
      var fragments = drain(&fragmenter, limits: [random.pick(8...30)])
      let isDamaged = index % 2 == 0
      if isDamaged {
        let place = random.pick(0...(fragments.count - 1))
        switch random.pick(0...2) {
        case 0: fragments.remove(at: place)
        case 1: fragments.insert(fragments[place], at: place)
        default: fragments.swapAt(place, fragments.count - 1 - place)
        }
      }
      var whole: [Data] = []
      for fragment in fragments {
        if case .message(let message) = assembler.receive(fragment) { whole.append(message) }
      }
      if isDamaged {
        // Repeating a whole message does no harm: requests and replies are idempotent. Nothing else may come out.
        #expect(whole.allSatisfy { $0 == message })
      } else {
        #expect(whole == [message])
        sent += 1
      }
    }
    #expect(sent == 6)
  }

  @Test("A message without end is dropped at the limit and the next one is read")
  func tooLong() {
    var assembler = ControlAssembler()
    var outcomes: [ControlAssembler.Outcome] = []
    for number in 0..<40 {
      let header = UInt8(number % 64) | (number == 0 ? 0x80 : 0)
      outcomes.append(assembler.receive(Data([header] + [UInt8](repeating: 1, count: 100))))
    }
    #expect(outcomes.prefix(5).allSatisfy { $0 == .incomplete })
    #expect(outcomes[5] == .tooLong)
    #expect(outcomes.dropFirst(6).allSatisfy { $0 == .dropped })
    #expect(assembler.receive(Data([0xC0, 7])) == .message(Data([7])))
  }

  @Test("Empty writes and messages without octets are dropped")
  func empty() {
    var assembler = ControlAssembler()
    #expect(assembler.receive(Data()) == .dropped)
    #expect(assembler.receive(Data([0xC0])) == .dropped)
  }

  @Test("A newer receipt takes the place of one that waits, and the queue is bounded")
  func queue() {
    func receipt(_ received: UInt64, request: UInt8 = 0) -> Data {
      HaulReply.receipt(
        HaulReply.Receipt(
          request: request, epoch: Epoch(rawValue: 1), state: .streaming, received: received, durable: 0,
          room: 1)
      ).encoded
    }
    var fragmenter = ControlFragmenter()
    for received in 0..<100 { fragmenter.enqueue(receipt(UInt64(received))) }
    fragmenter.enqueue(receipt(5, request: 3))
    var sent: [Data] = []
    while let fragment = fragmenter.next(limit: 100) { sent.append(fragment.dropFirst()) }
    #expect(sent == [receipt(99), receipt(5, request: 3)])

    for octet in 0..<100 { fragmenter.enqueue(Data([0x88, UInt8(octet)])) }
    var left = 0
    while fragmenter.next(limit: 100) != nil { left += 1 }
    #expect(left == ControlFragmenter.capacity)
  }
}
