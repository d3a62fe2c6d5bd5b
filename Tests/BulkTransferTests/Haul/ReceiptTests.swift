import Foundation
import Testing

@testable import BulkTransfer

@Suite("What a receipt may claim", .timeLimit(.minutes(30)))
struct ReceiptTests {
  /// A receipt that cannot be true.
  struct Claim: Sendable, CustomTestStringConvertible {
    let received: UInt64
    let durable: UInt64
    var state = HaulReply.Receipt.State.streaming
    var epoch: UInt16 = 1
    var testDescription: String { "\(durable) durable, \(received) received, \(state), epoch \(epoch)" }
  }

  /// A session that has sent the first part of an object of 1 000 000 octets: the receiver had room for 4096 and has confirmed nothing.
  private func halfway(from start: UInt64 = 0) throws -> SenderBench {
    var bench = try SenderBench([image(1_000_000)])
    bench.welcome()
    bench.accept(start > 0 ? .resumed : .fresh, durable: start, room: 16)
    _ = bench.packets()
    return bench
  }

  private static func confirmed(_ bench: SenderBench) -> [UInt64] {
    bench.actions.compactMap { if case .progress(let state) = $0 { state.confirmedBytes } else { nil } }
  }

  @Test(
    "octets that have not arrived, or were not sent, are not durable",
    arguments: [
      // All of it: progress would stand at 99 % at once.
      Claim(received: 1_000_000, durable: 1_000_000), Claim(received: 0, durable: 1_000_000),
      Claim(received: 4096, durable: 4097), Claim(received: 4095, durable: 4096),
      Claim(received: 5000, durable: 4097), Claim(received: 1 << 47, durable: 1 << 47),
      Claim(received: 4095, durable: 4096, state: .waitingForSync),
      Claim(received: 4096, durable: 4097, state: .waitingForSync, epoch: 2),
      Claim(received: 0, durable: 1_000_000, state: .waitingForSync, epoch: 2),
    ])
  func impossible(claim: Claim) throws {
    var bench = try halfway()
    bench.receipt(claim.received, durable: claim.durable, state: claim.state, epoch: claim.epoch)
    guard case .cancel = bench.lastRequest else {
      Issue.record("the device is told nothing")
      return
    }
    #expect(Self.confirmed(bench).allSatisfy { $0 == 0 })
    bench.wait(until: bench.now + .seconds(4))
    #expect(bench.error?.code == .protocolViolation)
    #expect(bench.error?.message.contains("\(claim.durable) bytes are durable") == true)
  }

  @Test("while it reads back, no more is durable than the object has")
  func readingBack() throws {
    var bench = try SenderBench()
    bench.sendEverything()
    bench.receipt(4096, durable: 10_001, state: .verifying)
    bench.wait(until: bench.now + .seconds(4))
    #expect(bench.error?.code == .protocolViolation)
  }

  @Test("what was stored before is durable although it was not sent, and what was sent may be all durable")
  func possible() throws {
    var bench = try halfway(from: 8192)
    bench.receipt(8192, durable: 8192, state: .waitingForSync)
    bench.receipt(12_288, durable: 12_288)
    bench.receipt(8192, durable: 8192, state: .waitingForSync, epoch: 2)
    #expect(bench.outcome == nil)
    #expect(Self.confirmed(bench).last == 12_288)
    if case .cancel = bench.lastRequest { Issue.record("the transfer was given up") }
  }

  @Test("a receipt of an older epoch is let pass, whatever it claims")
  func old() throws {
    var bench = try halfway()
    bench.lost(epoch: 2, offset: 0)
    _ = bench.packets()
    bench.receipt(0, durable: 1_000_000, epoch: 1)
    #expect(Self.confirmed(bench).allSatisfy { $0 == 0 })
    bench.receipt(4096, durable: 4096, epoch: 2)
    #expect(bench.outcome == nil)
    #expect(Self.confirmed(bench).last == 4096)
  }

  @Test("a packet that came twice makes the receiver count more than was sent, and nothing of it durable")
  func twice() throws {
    var bench = try halfway()
    bench.receipt(4300)
    #expect(bench.outcome == nil)
    #expect(Self.confirmed(bench).allSatisfy { $0 == 0 })
    bench.lost(epoch: 2, offset: 0)
    #expect(!bench.packets().isEmpty)
  }
}
