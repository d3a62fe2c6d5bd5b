import BulkTransfer
import Testing

@Suite("Receipt policy")
struct ReceiptPolicyTests {
  @Test("A receipt is due at the interval and not before")
  func interval() {
    var policy = ReceiptPolicy(interval: 4096, buffer: 1 << 18, age: .seconds(2))
    policy.sent(received: 1000, edge: 200_000, now: .zero)
    #expect(!policy.isDue(received: 5095, edge: 200_000, isDraining: false, now: .zero))
    #expect(policy.isDue(received: 5096, edge: 200_000, isDraining: false, now: .zero))
  }

  @Test("A full buffer waits until it has room, and then one receipt does for two")
  func fullBuffer() {
    var policy = ReceiptPolicy(interval: 4096, buffer: 4096, age: .seconds(2))
    policy.sent(received: 0, edge: 4096, now: .zero)
    #expect(!policy.isDue(received: 4096, edge: 4096, isDraining: true, now: .zero))
    #expect(policy.isDue(received: 4096, edge: 8192, isDraining: false, now: .zero))
  }

  @Test("A sender that stands at the edge it knows is told of a new one at once")
  func edge() {
    var policy = ReceiptPolicy(interval: 65536, buffer: 8192, age: .seconds(2))
    policy.sent(received: 0, edge: 8192, now: .zero)
    #expect(!policy.isDue(received: 5000, edge: 12288 - 256, isDraining: false, now: .zero))
    #expect(policy.isDue(received: 8191, edge: 8448, isDraining: false, now: .zero))
    #expect(policy.isDue(received: 5000, edge: 12288, isDraining: false, now: .zero))
  }

  @Test("A slow link gets a receipt by age, if there is anything to say")
  func age() {
    var policy = ReceiptPolicy(interval: 4096, buffer: 65536, age: .milliseconds(750))
    policy.sent(received: 100, edge: 65536, now: .seconds(1))
    #expect(!policy.isDue(received: 100, edge: 65536, isDraining: false, now: .seconds(9)))
    #expect(!policy.isDue(received: 120, edge: 65536, isDraining: false, now: .milliseconds(1700)))
    #expect(policy.isDue(received: 120, edge: 65536, isDraining: false, now: .milliseconds(1750)))
  }
}
