import Foundation
import Locking
import Radio
import Testing
import VirtualRadio

@_spi(Streams) @testable import CoreBluetooth

/// Tasks that read and write a channel whose far end is the test.
@Suite(.timeLimit(.minutes(30))) struct L2CAPByteChannelTests {
  private let rig: ChannelRig
  private let bytes: L2CAPByteChannel

  init() throws {
    rig = ChannelRig(room: 10)
    bytes = try #require(L2CAPByteChannel(rig.channel))
  }

  private func wait(until condition: () -> Bool) async { while !condition() { await Task.yield() } }

  private func code(_ error: (any Error)?) -> CBError.Code? { (error as? CBError)?.code }

  @Test func needsStreams() { #expect(L2CAPByteChannel(CBL2CAPChannel()) == nil) }

  @Test func readsWhatIsThere() async throws {
    rig.far.feed(Data([1, 2, 3]))
    #expect(try await bytes.read(upTo: 0) == Data())
    #expect(try await bytes.read(upTo: 2) == Data([1, 2]))
    #expect(try await bytes.read(upTo: 2) == Data([3]))
    await wait { rig.clock.counts.activities == 0 }
  }

  @Test("calls are served in their order", arguments: [1, 3, 100]) func readsInTurn(portion: Int) async throws
  {
    let (rig, bytes) = (rig, bytes)
    var tasks: [Task<Data?, any Error>] = []
    for i in 1...3 {
      tasks.append(Task { try await bytes.read(upTo: portion) })
      await wait { bytes.reads.count == i }
    }
    rig.far.feed(pattern(portion))
    let first = try await tasks[0].value
    #expect(first == pattern(portion))
    #expect(bytes.reads.count == 2)
    rig.far.feed(Data([7]))
    let second = try await tasks[1].value
    #expect(second == Data([7]))
    rig.far.end(nil)
    let third = try await tasks[2].value
    #expect(third == nil)
    await wait { rig.clock.counts.activities == 0 }
  }

  @Test(arguments: [nil, RadioError(.supervisionTimeout)])
  func endsAfterTheLastByte(error: RadioError?) async throws {
    rig.far.feed(pattern(1_000))
    rig.far.end(error)
    var got = Data()
    while got.count < 1_000 { got += try #require(try await bytes.read(upTo: 300)) }
    #expect(got == pattern(1_000))
    for _ in 0..<2 {
      if error == nil {
        #expect(try await bytes.read(upTo: 300) == nil)
      } else {
        let thrown = await #expect(throws: CBError.self) { try await bytes.read(upTo: 300) }
        #expect(code(thrown) == .connectionTimeout)
      }
      let thrown = await #expect(throws: CBError.self) { try await bytes.write(Data([1])) }
      #expect(code(thrown) == (error == nil ? .peripheralDisconnected : .connectionTimeout))
    }
  }

  @Test func writesWaitForRoomAndDoNotMix() async throws {
    let (rig, bytes) = (rig, bytes)
    try await bytes.write(Data())
    try await bytes.write(pattern(4))
    #expect(rig.far.sent == pattern(4))
    var tasks: [Task<Void, any Error>] = []
    for i in 1...3 {
      tasks.append(Task { try await bytes.write(Data(repeating: UInt8(i), count: 100)) })
      await wait { bytes.writes.count == i }
    }
    for _ in 0..<60 {
      rig.far.give(5)
      await wait { rig.far.room == 0 || bytes.writes.count == 0 }
    }
    for task in tasks { try await task.value }
    let expected = (1...3).reduce(pattern(4)) { $0 + Data(repeating: UInt8($1), count: 100) }
    #expect(rig.far.sent == expected)
    await wait { rig.clock.counts.activities == 0 }
  }

  @Test func aCancelledReadTakesNothing() async throws {
    let (rig, bytes) = (rig, bytes)
    let cancelled = Task { try await bytes.read(upTo: 5) }
    await wait { bytes.reads.count == 1 }
    let next = Task { try await bytes.read(upTo: 5) }
    await wait { bytes.reads.count == 2 }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    rig.far.feed(Data([1, 2, 3]))
    let got = try await next.value
    #expect(got == Data([1, 2, 3]))
    let late = Task {
      await wait { Task.isCancelled }
      return try await bytes.read(upTo: 5)
    }
    late.cancel()
    rig.far.feed(Data([4]))
    await #expect(throws: CancellationError.self) { try await late.value }
    #expect(try await bytes.read(upTo: 5) == Data([4]))
    await wait { rig.clock.counts.activities == 0 }
  }

  @Test("a cancelled write sends nothing, or tears the channel", arguments: [0, 10])
  func aCancelledWrite(isAheadOf room: Int) async throws {
    let (rig, bytes) = (rig, bytes)
    if room == 0 { try await bytes.write(pattern(10)) }
    let cancelled = Task { try await bytes.write(Data(repeating: 9, count: 50)) }
    await wait { bytes.writes.count == 1 }
    let next = Task { try await bytes.write(Data([5, 6])) }
    await wait { bytes.writes.count == 2 }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    rig.far.give(100)
    if room == 0 {
      try await next.value
      #expect(rig.far.sent == pattern(10) + Data([5, 6]))
    } else {
      let thrown = await #expect(throws: CBError.self) { try await next.value }
      #expect(code(thrown) == .operationCancelled)
      await #expect(throws: CBError.self) { try await bytes.write(Data([1])) }
      #expect(rig.far.sent == Data(repeating: 9, count: 10))
      // The other direction is whole.
      rig.far.feed(Data([1]))
      #expect(try await bytes.read(upTo: 1) == Data([1]))
    }
  }

  @Test("reads that are cancelled at any moment lose nothing", arguments: 1...5 as ClosedRange<UInt64>)
  func cancelsReadsAtAnyMoment(seed: UInt64) async throws {
    let (rig, bytes) = (rig, bytes)
    let feeder = Task {
      var generator = SeededGenerator(seed: seed)
      var rest = pattern(20_000)
      while !rest.isEmpty {
        let portion = rest.prefix(Int.random(in: 1...300, using: &generator))
        rest = rest.dropFirst(portion.count)
        rig.far.feed(Data(portion))
        await Task.yield()
      }
      rig.far.end(nil)
    }
    var generator = SeededGenerator(seed: ~seed)
    var got = Data()
    var isAtEnd = false
    while !isAtEnd {
      let count = Int.random(in: 1...400, using: &generator)
      let read = Task { try await bytes.read(upTo: count) }
      if Bool.random(using: &generator) {
        for _ in 0..<Int.random(in: 0...3, using: &generator) { await Task.yield() }
        read.cancel()
      }
      do {
        if let block = try await read.value { got += block } else { isAtEnd = true }
      } catch is CancellationError {}
    }
    await feeder.value
    #expect(got == pattern(20_000))
  }

  @Test(
    "writes that are cancelled at any moment send all, nothing, or tear",
    arguments: 1...5 as ClosedRange<UInt64>)
  func cancelsWritesAtAnyMoment(seed: UInt64) async throws {
    let (rig, bytes) = (rig, bytes)
    let giver = Task {
      var generator = SeededGenerator(seed: seed)
      while !Task.isCancelled {
        rig.far.give(Int.random(in: 1...40, using: &generator))
        await Task.yield()
      }
    }
    var generator = SeededGenerator(seed: ~seed)
    var expected = Data()
    for i in 0..<300 {
      let piece = Data(
        repeating: UInt8(truncatingIfNeeded: i), count: Int.random(in: 1...200, using: &generator))
      let write = Task { try await bytes.write(piece) }
      let isCancelled = Int.random(in: 0..<10, using: &generator) == 0
      if isCancelled {
        for _ in 0..<Int.random(in: 0...3, using: &generator) { await Task.yield() }
        write.cancel()
      }
      do {
        try await write.value
        expected += piece
      } catch is CancellationError {
        let sent = rig.far.sent.dropFirst(expected.count)
        guard !sent.isEmpty else { continue }
        #expect(sent.count < piece.count)
        #expect(Data(sent) == piece.prefix(sent.count))
        let thrown = await #expect(throws: CBError.self) { try await bytes.write(Data([1])) }
        #expect(code(thrown) == .operationCancelled)
        expected += sent
        break
      }
      #expect(rig.far.sent == expected)
    }
    giver.cancel()
    await giver.value
    #expect(rig.far.sent == expected)
  }

  @Test func closingEndsWhatWaits() async throws {
    let (rig, bytes) = (rig, bytes)
    let read = Task { try await bytes.read(upTo: 5) }
    let write = Task { try await bytes.write(pattern(50)) }
    await wait { bytes.reads.count == 1 && bytes.writes.count == 1 }
    bytes.close()
    bytes.close()
    let thrown = await #expect(throws: CBError.self) { _ = try await read.value }
    #expect(code(thrown) == .operationCancelled)
    await #expect(throws: CBError.self) { try await write.value }
    await #expect(throws: CBError.self) { try await bytes.read(upTo: 1) }
    #expect(rig.far.closes == 1)
    #expect(rig.far.sent == pattern(10))
    await wait { rig.clock.counts.activities == 0 }
  }

  @Test func endsTheChannelWhenReleased() throws {
    let rig = ChannelRig()
    do {
      let bytes = try #require(L2CAPByteChannel(rig.channel))
      #expect(bytes.reads.count == 0)
      #expect(rig.far.closes == 0)
    }
    #expect(rig.far.closes == 1)
  }
}
