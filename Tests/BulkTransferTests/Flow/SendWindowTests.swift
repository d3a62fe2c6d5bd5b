import BulkTransfer
import Testing

@Suite("Send window")
struct SendWindowTests {
  private let window = SendWindow(initial: 1000, minimum: 500, maximum: 4000, step: 100)

  @Test("It doubles with each window that was used up and confirmed, up to its ceiling")
  func slowStart() {
    var window = window
    var sizes: [Int] = []
    for _ in 0..<4 {
      window.confirmed(window.size, wasUsed: true, isQueueing: false)
      sizes.append(window.size)
    }
    #expect(sizes == [2000, 4000, 4000, 4000])
  }

  @Test("A loss halves it, down to its floor, and growth is slow from then on")
  func losses() {
    var window = window
    window.confirmed(1000, wasUsed: true, isQueueing: false)
    window.lost()
    #expect(window.size == 1000)
    window.confirmed(999, wasUsed: true, isQueueing: false)
    #expect(window.size == 1000)
    window.confirmed(1, wasUsed: true, isQueueing: false)
    #expect(window.size == 1100)
    for _ in 0..<5 { window.lost() }
    #expect(window.size == 500)
  }

  @Test("It does not grow while it is not used, nor while a queue has formed")
  func noGrowth() {
    var window = window
    window.confirmed(5000, wasUsed: false, isQueueing: false)
    #expect(window.size == 1000)
    window.confirmed(5000, wasUsed: true, isQueueing: true)
    #expect(window.size == 1000)
    #expect(!window.isInSlowStart)
  }

  @Test("What may be sent is bounded by the window and by the right edge")
  func allowance() {
    let byWindow = window.allowance(sent: 5300, received: 5000, rightEdge: 100_000)
    #expect(byWindow.octets == 700 && byWindow.bound == .window)
    let byEdge = window.allowance(sent: 5300, received: 5000, rightEdge: 5376)
    #expect(byEdge.octets == 76 && byEdge.bound == .rightEdge)
    // A window that has shrunk below what is in flight allows nothing.
    #expect(window.allowance(sent: 9000, received: 5000, rightEdge: 100_000).octets == 0)
    #expect(window.allowance(sent: 9000, received: 8999, rightEdge: 8000).octets == 0)
  }

  @Test("Contradictory limits still make a window")
  func contradiction() {
    let window = SendWindow(initial: 0, minimum: 0, maximum: -5, step: 0)
    #expect(window.size == 1)
  }
}
