import BlockingTests
import Dispatch
import Foundation
import Glibc
import Locking
import Radio
import Testing

@testable import BlueZRadio

/// Accepting channels.
@Suite("L2CAP: accepting channels", .blocking, .timeLimit(.minutes(30))) struct L2CAPListenerTests {
  private static let device = DeviceAddress(value: 0xC0AA_0101_0001, kind: .random)
  private static let adapter = DeviceAddress(value: 0x00AA_0100_0000, kind: .public)

  /// Takes channels and lets a test wait for them.
  private final class Accepted: Sendable {
    private let all = PosixMutex<[(DeviceAddress, L2CAPChannel)]>([])
    private let signal = DispatchSemaphore(value: 0)

    @Sendable func take(_ address: DeviceAddress, _ channel: L2CAPChannel) {
      all.withLock { $0.append((address, channel)) }
      signal.signal()
    }

    var count: Int { all.withLock { $0.count } }

    /// Waits until there are so many; the last of them.
    func wait(for count: Int) throws -> (DeviceAddress, L2CAPChannel) {
      while self.count < count {
        try #require(signal.wait(timeout: .now() + 120) == .success, "no channel")
      }
      return all.withLock { $0[$0.count - 1] }
    }

    func removeFirst() { _ = all.withLock { $0.removeFirst() } }
  }

  private let sockets = UnixSockets()
  private let clock = HandClock()
  private let accepted = Accepted()

  private func listen(requiresEncryption: Bool = false) throws -> L2CAPListener {
    try L2CAPListener(
      adapter: Self.adapter, requiresEncryption: requiresEncryption, clock: clock, sockets: sockets,
      onAccept: accepted.take)
  }

  @Test("The first free PSM is taken", arguments: [0, 1, 5, 127])
  func choosesPSM(_ taken: Int) throws {
    let psms = L2CAPListener.dynamicPSMs.prefix(taken)
    sockets.failListening(Dictionary(uniqueKeysWithValues: psms.map { ($0, EADDRINUSE) }))
    let listener = try listen()
    #expect(listener.psm == 0x80 + PSM(taken))
    #expect(Array(sockets.listened.keys) == [listener.psm])
  }

  @Test(
    "Without a PSM the error says why",
    arguments: [(EADDRINUSE, .outOfSpace), (EAFNOSUPPORT, .notSupported), (ENOMEM, .noResources)]
      as [(Int32, RadioError.Code)])
  func noPSM(_ number: Int32, _ code: RadioError.Code) throws {
    sockets.failListening(
      Dictionary(uniqueKeysWithValues: L2CAPListener.dynamicPSMs.map { ($0, number) }))
    let error = #expect(throws: RadioError.self) { try listen() }
    #expect(error?.code == code)
  }

  @Test("Encryption is asked of the kernel where it is required", arguments: [false, true])
  func security(_ requiresEncryption: Bool) throws {
    let listener = try listen(requiresEncryption: requiresEncryption)
    #expect(sockets.listened[listener.psm] == (requiresEncryption ? .medium : .low))
  }

  @Test("A channel says who has opened it and where, and carries bytes both ways")
  func accepts() throws {
    let listener = try listen()
    let far = try sockets.arrive(Self.device)
    let (address, channel) = try accepted.wait(for: 1)
    #expect(address == Self.device)
    #expect(channel.psm == listener.psm && channel.peer == Self.device.peer)
    #expect(channel.write(Data([1, 2])) == 2)
    #expect(try far.receive() == [1, 2])
    let events = ChannelEvents()
    channel.setSink(events.sink)
    try far.send([3])
    #expect(events.wait { channel.hasBytes })
  }

  @Test("There are no more channels than one may have; when one ends, the next comes in")
  func bounds() throws {
    let listener = try listen()
    var ends: [FarEnd] = []
    for _ in 0..<L2CAPListener.mostChannels + 2 { ends.append(try sockets.arrive(Self.device)) }
    _ = try accepted.wait(for: L2CAPListener.mostChannels)
    #expect(sockets.waitingCount == 2)
    // One by the peer, one by this side.
    ends[3].close()
    _ = try accepted.wait(for: L2CAPListener.mostChannels + 1)
    #expect(sockets.waitingCount == 1)
    accepted.removeFirst()
    ends[0].close()
    _ = try accepted.wait(for: L2CAPListener.mostChannels + 1)
    #expect(sockets.waitingCount == 0)
    withExtendedLifetime(listener) {}
  }

  @Test("Without descriptors, devices wait until there are some")
  func pauses() throws {
    sockets.failAccepting(EMFILE)
    let listener = try listen()
    _ = try sockets.arrive(Self.device)
    #expect(clock.waitForTimer(within: .seconds(1)))
    clock.advance(by: .seconds(1))
    #expect(clock.waitForTimer(within: .seconds(1)))
    #expect(accepted.count == 0)
    sockets.failAccepting(nil)
    clock.advance(by: .seconds(1))
    _ = try accepted.wait(for: 1)
    #expect(clock.pendingCount == 0)
    withExtendedLifetime(listener) {}
  }

  @Test(
    "Closing a listener closes what it has accepted, in order, and accepts nothing more",
    arguments: [false, true])
  func closes(_ byReleasing: Bool) throws {
    let events = ChannelEvents()
    let far: FarEnd
    do {
      let listener = try listen()
      far = try sockets.arrive(Self.device)
      let (_, channel) = try accepted.wait(for: 1)
      channel.setSink(events.sink)
      #expect(channel.write(Data([1, 2])) == 2)
      if !byReleasing { listener.close() }
      withExtendedLifetime(listener) {}
    }
    #expect(try far.receive() == [1, 2])
    #expect(try far.receive() == nil)
    far.close()
    #expect(events.waitForEnd())
    #expect(events.end == .some(nil))
    _ = try sockets.arrive(Self.device)
    #expect(accepted.count == 1)
  }
}
