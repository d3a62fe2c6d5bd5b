import Foundation
import Testing

@testable import BulkTransfer

@Suite("Receiver session and what its storage does", .timeLimit(.minutes(30)))
struct ReceiverStorageTests {
  @Test("Offers without end do not pile up requests to a storage that is slow to open")
  func endlessOffers() throws {
    var bench = try ReceiverBench()
    bench.holdsStorage = true
    for session in 1...50 {
      bench.hello(session: UInt64(session))
      bench.offerObject()
      bench.offerObject()
    }
    #expect(bench.requests.count < 12)
    guard case .refused(let refusal) = bench.lastReply else {
      Issue.record("not refused")
      return
    }
    #expect(refusal.code == .policy)
    // Once the storage has caught up, offers are taken again.
    bench.releaseStorage(from: 0)
    bench.offerObject()
    guard case .accept = bench.lastReply else {
      Issue.record("not accepted")
      return
    }
  }

  @Test(
    "After a write has failed nothing later becomes durable, even if the link is lost before the failure is known"
  )
  func failedWriteThenCut() throws {
    var bench = try ReceiverBench()
    bench.start()
    bench.holdsStorage = true
    let before = bench.requests.count
    bench.flash.failWrites(at: 5000, .once)
    bench.send(bench.stream().prefix(17_000))
    bench.tell(.carrierLost)
    bench.releaseStorage(from: before)
    #expect(bench.flash.durableOffset(of: bench.digest) == 0)
    bench.hello(session: 100)
    bench.offerObject()
    bench.sync(session: 100)
    bench.send(bench.stream())
    #expect(bench.flash.contents(of: "a.bin") == bench.contents)
  }

  @Test("An object that another connection uses is refused as busy")
  func inUse() throws {
    var bench = try ReceiverBench()
    let other = try bench.flash.open(ReceivedObject(sha256: bench.digest, size: 20_000, name: "a.bin"))
    bench.hello()
    bench.offerObject()
    guard case .refused(let refusal) = bench.lastReply else {
      Issue.record("not refused")
      return
    }
    #expect(refusal.code == .inUse)
    withExtendedLifetime(other) {}
  }

  @Test(
    "An object that the storage does not take is refused for its reason",
    arguments: [
      (TransferError.Code.objectTooLarge, HaulRefusalCode.tooLarge), (.nameNotAcceptable, .badName),
      (.nameTaken, .nameExists), (.diskFull, .noSpace), (.locked, .inUse), (.refused, .policy),
    ])
  func storageRefusals(code: TransferError.Code, expected: HaulRefusalCode) throws {
    var bench = try ReceiverBench()
    bench.holdsStorage = true
    bench.hello()
    bench.offerObject()
    let object = try #require(bench.requests.last).object
    bench.tell(.storage(StorageReport(object: object, result: .failed(TransferError(code, "not this one")))))
    guard case .refused(let refusal) = bench.lastReply else {
      Issue.record("not refused but \(String(describing: bench.lastReply))")
      return
    }
    #expect(refusal.code == expected)
    #expect(refusal.text == "not this one")
  }

  @Test("What is durable is told soon, and a gigabyte does not need a sync for each segment")
  func syncPolicy() throws {
    var bench = try ReceiverBench(size: 3 << 20)
    bench.start()
    let stream = bench.stream()
    // 100 000 octets per second.
    for start in stride(from: 0, to: stream.count, by: 500) {
      bench.wait(until: .microseconds(start * 10))
      bench.tell(.packet(stream[start..<min(start + 500, stream.count)]))
    }
    #expect(bench.flash.names == ["a.bin"])
    let syncs = bench.requests.filter { if case .sync = $0.operation { true } else { false } }.count
    #expect(syncs > 31 && syncs < 140)
    var durable: UInt64 = 0
    for case .receipt(let receipt) in bench.replies where receipt.state == .streaming {
      #expect(receipt.durable >= durable)
      #expect(receipt.received - receipt.durable < 45_000)
      durable = receipt.durable
    }
  }

  @Test("Without more data what was written still becomes durable and is told")
  func syncByTime() throws {
    var bench = try ReceiverBench()
    bench.start()
    bench.send(bench.stream().prefix(9000))
    #expect(bench.lastReceipt?.durable == 0)
    bench.wait(until: .seconds(3))
    #expect(bench.lastReceipt?.durable == 8192)
  }

  @Test("Storage that is silent is announced as busy; a silent sender is let go, with what it has sent kept")
  func silence() throws {
    var bench = try ReceiverBench()
    bench.holdsStorage = true
    bench.hello()
    bench.offerObject()
    bench.wait(until: .seconds(60))
    let busy = bench.replies.filter { if case .busy(let request, _) = $0 { request == 2 } else { false } }
    #expect(busy.count > 10)
    #expect(!bench.hasClosed)
    bench.releaseStorage(from: 0)
    bench.sync()
    bench.send(bench.stream().prefix(6000))
    bench.wait(until: .seconds(120))
    #expect(bench.hasClosed)
    #expect(!bench.session.isActive)
    #expect(bench.flash.durableOffset(of: bench.digest) == 4096)
  }

  @Test("Losing the carrier makes durable what was verified")
  func carrierLost() throws {
    var bench = try ReceiverBench()
    bench.start()
    bench.send(bench.stream().prefix(10_000))
    bench.tell(.carrierLost)
    #expect(bench.flash.durableOffset(of: bench.digest) == 8192)
    bench.hello(session: 100)
    bench.offerObject()
    guard case .accept(let accept) = bench.lastReply else {
      Issue.record("not accepted")
      return
    }
    #expect(accept.standing == .resumed && accept.durable == 8192)
  }

  @Test("A wrong whole hash fails the object and throws it away")
  func wrongHash() throws {
    var bench = try ReceiverBench()
    bench.flash.corruptWrites(at: 5000)
    bench.start()
    bench.send(bench.stream())
    guard case .failed(let failure) = bench.lastReply else {
      Issue.record("not failed")
      return
    }
    #expect(failure.code == .hashDiffers)
    #expect(bench.flash.names.isEmpty)
    #expect(bench.flash.durableOffset(of: bench.digest) == nil)
    let number = bench.ask { .query(request: $0) }
    guard case .failed(let again) = bench.lastReply else {
      Issue.record("not told again")
      return
    }
    #expect(again.request == number && again.code == .hashDiffers)
  }
}
