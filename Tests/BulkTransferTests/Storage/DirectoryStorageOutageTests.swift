import Foundation
import Testing

@testable import BulkTransfer

@Suite("Directory storage under outages")
struct DirectoryStorageOutageTests {
  struct Scenario: Sendable, CustomTestStringConvertible {
    var outage: VolatileFileSystem.Outage
    var policy: DirectoryStorage.ExistingFilePolicy
    var testDescription: String { "\(outage), \(policy)" }

    static let all = VolatileFileSystem.Outage.allCases.flatMap { outage in
      DirectoryStorage.ExistingFilePolicy.allCases.map { Scenario(outage: outage, policy: $0) }
    }
  }

  let bytes = pattern(5000)
  let old = Data("older file".utf8)

  @Test(
    "at whatever call an outage comes, the transfer goes on and ends in the very bytes",
    arguments: Scenario.all)
  func everyCall(_ scenario: Scenario) throws {
    let object = try ReceivedObject(bytes)
    let policy = DirectoryStorage.Policy(existingFile: scenario.policy)
    let final = scenario.policy == .number ? "fw-1.bin" : "fw.bin"
    for call in 0..<200 {
      let system = VolatileFileSystem()
      if scenario.policy != .refuse { system.put(old, "fw.bin") }
      system.fail(after: call)
      var promised: UInt64 = 0
      var completed = false
      do {
        let part = try DirectoryStorage(path: "/d", policy: policy, operations: system).part(object)
        for start in stride(from: 0, to: 5000, by: 1000) {
          _ = try part.write(bytes[start..<start + 1000], at: UInt64(start))
          _ = try part.sync(through: UInt64(start + 1000))
          promised = UInt64(start + 1000)
          if start == 2000 {
            promised = 2000
            try part.rewind(to: 2000)
            _ = try part.write(bytes[2000..<3000], at: 2000)
          }
        }
        _ = try part.commit(verified: part.digest())
        completed = true
      } catch {}
      system.recover(from: scenario.outage)

      let seen = system.contents(final)
      #expect(
        seen == nil || seen == bytes || (seen == old && scenario.policy == .replace), "after \(call) calls")
      if completed { #expect(seen == bytes) }
      if scenario.policy == .number { #expect(system.contents("fw.bin") == old) }

      let storage = try DirectoryStorage(path: "/d", policy: policy, operations: system)
      switch try storage.open(object) {
      case .complete:
        #expect(promised == 5000)
      case .part(let part, _):
        let durable = part.durableOffset
        // A rewind may be forgotten, a promise may not.
        #expect(durable >= promised && !completed, "after \(call) calls")
        #expect(try part.read(at: 0, count: Int(durable)) == bytes.prefix(Int(durable)))
        _ = try part.finish(bytes)
      }
      #expect(system.contents(final) == bytes)
      #expect(system.names.filter { $0.hasPrefix(".bluehaul-") } == [])
      if completed { return }
    }
    Issue.record("the transfer never completed")
  }

  @Test("a call that fails once is an error, and the same part goes on", arguments: [EIO, ENOSPC])
  func transientFailure(code: Int32) throws {
    let object = try ReceivedObject(bytes)
    for call in 0..<200 {
      let system = VolatileFileSystem()
      system.fail(after: call, code: code, once: true)
      var failure: TransferError?
      for _ in 0..<3 {
        do {
          let storage = try DirectoryStorage(path: "/d", operations: system)
          if case .part(let part, _) = try storage.open(object) { _ = try part.finish(bytes) }
          break
        } catch let error as TransferError {
          failure = error
        }
      }
      #expect(system.contents("fw.bin") == bytes, "after \(call) calls")
      guard let failure else { return }
      #expect(failure.code == (code == ENOSPC ? .diskFull : .storage))
    }
    Issue.record("no run went through without a failure")
  }

  @Test("after a sync that failed the part is opened anew: what the kernel dropped must be received again")
  func failedSync() throws {
    let object = try ReceivedObject(bytes)
    let system = VolatileFileSystem()
    let storage = try DirectoryStorage(path: "/d", operations: system)
    let part = try storage.part(object)
    _ = try part.write(bytes.prefix(1000), at: 0)
    system.fail(after: 0, once: true)
    #expect(throws: TransferError.self) { try part.sync(through: 1000) }
    #expect(throws: TransferError.self) { try part.sync(through: 1000) }
    let again = try storage.part(object)
    #expect(again.durableOffset == 0)
    _ = try again.finish(bytes)
  }

  @Test("a full disk is said, what was received is kept, and the rest follows once there is room")
  func diskFull() throws {
    let object = try ReceivedObject(bytes)
    let system = VolatileFileSystem()
    system.setCapacity(12_000)
    system.put(Data(count: 2000), "other")
    do {
      let part = try DirectoryStorage(path: "/d", operations: system).part(object)
      system.put(Data(count: 8000), "other2")
      let error = #expect(throws: TransferError.self) { try part.receive(bytes, interval: 1000) }
      #expect(error?.code == .diskFull)
      #expect(part.durableOffset < 5000)
    }
    let full = #expect(throws: TransferError.self) {
      try DirectoryStorage(path: "/d", operations: system).open(object)
    }
    #expect(full?.code == .diskFull)
    #expect(full?.isRetriable == true)
    system.setCapacity(100_000)
    let storage = try DirectoryStorage(path: "/d", operations: system)
    #expect(try storage.part(object).finish(bytes) == "/d/fw.bin")
    #expect(system.contents("fw.bin") == bytes)
  }

  @Test("a torn state falls back to the one before, two torn ones to the start")
  func tornState() throws {
    let object = try ReceivedObject(bytes)
    for slots in [[0], [1], [0, 1]] {
      let system = VolatileFileSystem()
      do {
        let part = try DirectoryStorage(path: "/d", operations: system).part(object)
        try part.receive(bytes.prefix(3000), interval: 1000)
      }
      let name = DirectoryStorage.stateName(object.sha256)
      var state = try #require(system.contents(name))
      let newest = try #require(PartState.newest(in: state))
      #expect(newest.durable == 3000)
      for slot in slots { state[slot * PartState.slotSize + 30] ^= 0xFF }
      system.put(state, name)
      let part = try DirectoryStorage(path: "/d", operations: system).part(object)
      let newestSlot = Int(newest.sequence % 2)
      #expect(part.durableOffset == (slots == [0, 1] ? 0 : slots == [newestSlot] ? 2000 : 3000))
      _ = try part.finish(bytes)
      #expect(system.contents("fw.bin") == bytes)
    }
  }

  @Test("a state file of any contents is read without harm")
  func arbitraryState() throws {
    let object = try ReceivedObject(bytes)
    let good = PartState(sequence: 7, object: object, durable: 100).encoded
    for count in 0...good.count {
      let found = PartState.newest(in: good.prefix(count))
      #expect((found != nil) == (count == good.count))
    }
    for index in good.indices {
      var bad = good
      bad[index] ^= 0x40
      #expect(PartState.newest(in: bad) == nil)
    }
  }
}
