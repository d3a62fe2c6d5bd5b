import BlockingTests
import Dispatch
import Foundation
import Glibc
import Locking
import Radio
import SystemCalls
import Testing

@testable import BlueZRadio

/// Opening channels.
@Suite("L2CAP: opening channels", .blocking, .timeLimit(.minutes(30))) struct L2CAPConnectorTests {
  private static let device = DeviceAddress(value: 0x00AA_0101_0001, kind: .random)
  private static let adapter = DeviceAddress(value: 0x00AA_0100_0000, kind: .public)

  /// Takes answers and lets a test wait for them.
  private final class Answers: Sendable {
    private let all = PosixMutex<[Result<L2CAPChannel, RadioError>]>([])
    private let signal = DispatchSemaphore(value: 0)

    @Sendable func take(_ answer: Result<L2CAPChannel, RadioError>) {
      all.withLock { $0.append(answer) }
      signal.signal()
    }

    var count: Int { all.withLock { $0.count } }

    func next() throws -> Result<L2CAPChannel, RadioError> {
      try #require(signal.wait(timeout: .now() + 120) == .success, "no answer")
      return all.withLock { $0[$0.count - 1] }
    }

    func error() throws -> RadioError {
      guard case .failure(let error) = try next() else { throw Unexpected() }
      return error
    }
  }

  private struct Unexpected: Error {}

  private let sockets = UnixSockets()
  private let clock = HandClock()
  private let answers = Answers()

  private func connect(psm: PSM = 0x80, security: L2CAPSecurity = .low) -> L2CAPAttempt {
    L2CAPConnector(clock: clock, sockets: sockets).connect(
      to: Self.device, from: Self.adapter, psm: psm, security: security, peer: Self.device.peer,
      completion: answers.take)
  }

  @Test("An open channel is what was asked for, and carries bytes both ways")
  func opens() throws {
    _ = connect(psm: 0x93, security: .medium)
    let channel = try answers.next().get()
    #expect(channel.psm == 0x93 && channel.peer == Self.device.peer)
    #expect(
      sockets.requests == [
        L2CAPRequest(device: Self.device, adapter: Self.adapter, psm: 0x93, security: .medium)
      ])
    let far = try #require(sockets.far)
    #expect(channel.write(Data([1, 2, 3])) == 3)
    #expect(try far.receive() == [1, 2, 3])
    let events = ChannelEvents()
    channel.setSink(events.sink)
    try far.send([4, 5])
    #expect(events.wait { channel.hasBytes })
    #expect(channel.read(upTo: 10) == Data([4, 5]))
    // The attempt is over: nothing is left of its time limit.
    #expect(clock.pendingCount == 0)
  }

  @Test("A device that takes its time is waited for")
  func pends() throws {
    sockets.set(.pending)
    _ = connect()
    #expect(clock.waitForTimer(within: L2CAPConnector.timeLimit))
    clock.advance(by: L2CAPConnector.timeLimit - .milliseconds(1))
    #expect(answers.count == 0)
    try sockets.answer()
    _ = try answers.next().get()
    clock.advance(by: .seconds(60))
    #expect(answers.count == 1)
  }

  @Test("A device that does not answer is given up, and hears of it")
  func timesOut() throws {
    sockets.set(.pending)
    _ = connect()
    #expect(clock.waitForTimer(within: L2CAPConnector.timeLimit))
    clock.advance(by: L2CAPConnector.timeLimit)
    #expect(try answers.error().code == .timeout)
    let far = try #require(sockets.far)
    while try far.receive() != nil {}
  }

  @Test("A cancelled attempt answers that once, whatever happens later")
  func cancels() throws {
    sockets.set(.pending)
    let attempt = connect()
    #expect(clock.waitForTimer(within: L2CAPConnector.timeLimit))
    attempt.cancel()
    attempt.cancel()
    #expect(try answers.error().code == .cancelled)
    try sockets.answer()
    clock.advance(by: .seconds(60))
    attempt.cancel()
    #expect(answers.count == 1)
  }

  @Test("A socket that ends with an error says why")
  func fails() throws {
    sockets.set(.failing)
    _ = connect()
    #expect(try answers.error().code == .peerTerminated)
  }

  @Test("PSMs that no LE device has are not asked for", arguments: [0, 0x100, 0x1001, .max] as [PSM])
  func checksPSM(_ psm: PSM) throws {
    _ = connect(psm: psm)
    #expect(try answers.error().code == .invalidParameters)
    #expect(sockets.requests.isEmpty)
  }

  @Test(
    "Errors of the kernel are told as what they mean",
    arguments: [
      (ECONNREFUSED, .psmNotSupported), (EACCES, .insufficientSecurity), (EBADE, .insufficientSecurity),
      (ENOMEM, .noResources), (EMFILE, .noResources), (EMLINK, .connectionLimit), (ETIMEDOUT, .timeout),
      (EHOSTDOWN, .timeout), (EHOSTUNREACH, .notPoweredOn), (ENETDOWN, .notPoweredOn),
      (EAFNOSUPPORT, .notSupported), (EINVAL, .invalidParameters), (ECONNRESET, .peerTerminated),
      (EIO, .connectionFailed),
    ] as [(Int32, RadioError.Code)])
  func tellsErrors(_ number: Int32, _ code: RadioError.Code) throws {
    sockets.set(.refused(number))
    _ = connect()
    let error = try answers.error()
    #expect(error.code == code)
    // A person reads which device and which PSM.
    #expect(error.message.contains("\(Self.device)") && error.message.contains("128"))
  }

  @Test(
    "A refusal after the kernel has raised the level was one for security",
    arguments: [
      (.low, .low, .psmNotSupported), (.low, .medium, .insufficientSecurity),
      (.medium, .medium, .psmNotSupported), (.medium, .high, .insufficientSecurity),
    ] as [(L2CAPSecurity, L2CAPSecurity, RadioError.Code)])
  func tellsSecurity(_ asked: L2CAPSecurity, _ demanded: L2CAPSecurity, _ code: RadioError.Code) {
    let request = L2CAPRequest(device: Self.device, adapter: Self.adapter, psm: 0x80, security: asked)
    let error = RadioError(opening: request, SystemError("connect(2)", ECONNREFUSED), demanded: demanded)
    #expect(error.code == code)
  }

  @Test(
    "What breaks an open channel is told as what it means",
    arguments: [
      (ETIMEDOUT, .supervisionTimeout), (ECONNRESET, .peerTerminated), (ECONNABORTED, .cancelled),
      (ENETDOWN, .notPoweredOn), (EIO, .other),
    ] as [(Int32, RadioError.Code)])
  func tellsBreaks(_ number: Int32, _ code: RadioError.Code) {
    #expect(RadioError(broken: SystemError("recv(2)", number)).code == code)
    #expect(RadioError(broken: nil).code == .other)
  }
}
