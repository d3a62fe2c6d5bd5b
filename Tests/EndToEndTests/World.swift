import BulkTransfer
import CoreBluetooth
import Locking
import Foundation
import Radio
import Testing
import VirtualRadio

@testable import BluehaulTool

/// A sender, a device and the air between them, in simulated time that runs by itself.
final class World: Sendable {
  static let deviceName = "bench-1"

  let clock = VirtualClock(.lockStep)
  let air: VirtualAir
  let engineClock: RadioTime
  let sender: ObservedRadio
  let phone: VirtualRadio
  let device: VirtualRadio
  let flash: SimulatedFlash
  /// What the managers of sender and device were told at the wrong time; whatever goes wrong on the air, that is to be nothing.
  private let misuseLog = MisuseLog()

  init(
    _ link: LinkParameters = LinkParameters(), faults: FaultPlan = FaultPlan(),
    flash: SimulatedFlash.Profile = SimulatedFlash.Profile(), seed: UInt64 = 1
  ) throws {
    air = VirtualAir(clock: clock, link: link, seed: seed, faults: faults)
    engineClock = RadioTime(clock)
    phone = air.makeRadio(name: "sender")
    sender = ObservedRadio(phone)
    device = air.makeRadio(name: Self.deviceName)
    self.flash = SimulatedFlash(profile: flash)
    try clock.start { error in Issue.record(error) }
  }

  deinit {
    clock.stop()
    for line in misuse { Issue.record("\(line)") }
  }

  var misuse: [String] { misuseLog.lines.withLock { $0 } }

  /// Options of a manager that uses `radio`.
  func managerOptions(_ radio: any Radio) -> [String: any Sendable] {
    let log = CBLogHandler { [misuseLog] line in
      if line.hasPrefix("API MISUSE") { misuseLog.lines.withLock { $0.append(line) } }
    }
    return [CBManagerOptionRadioKey: radio, CBManagerOptionLogHandlerKey: log]
  }

  /// Lets so much simulated time pass, and everything happen that is due by then.
  func pass(_ time: Duration) async {
    await withCheckedContinuation { continuation in
      _ = clock.schedule(after: time) { continuation.resume() }
    }
  }

  /// Starts the device and returns once it advertises.
  func startDevice(
    offersChannel: Bool = true, storage: (any ReceiverStorage)? = nil,
    change: (inout ReceiveOptions) -> Void = { _ in }
  ) async throws -> Device {
    var options = try ReceiveOptions(name: Self.deviceName)
    options.offersChannel = offersChannel
    change(&options)
    let operation = ReceiveOperation(
      into: storage ?? flash, options: options, managerOptions: managerOptions(device),
      clock: engineClock)
    return try await Device(operation)
  }

  /// Prepares a push of `contents` to the device, which it looks for no longer than it has to: tests do things at moments of its course.
  func push(
    _ contents: [Data], coding: ObjectCoding? = nil, base: (any ByteSource)? = nil,
    options: PushOptions = PushOptions(), target: DeviceTarget = .name(deviceName),
    by radio: (any Radio)? = nil, settleTime: Duration? = .milliseconds(250),
    record: (@Sendable (_ durable: [UInt64], _ facts: [String: String]) -> Void)? = nil,
    observe: (@Sendable (_ activity: TransferActivity, _ now: Duration) -> Void)? = nil
  ) throws -> PushOperation {
    var options = options
    if let settleTime { options.link.connection.settleTime = settleTime }
    var objects: [PushObject] = []
    for (index, bytes) in contents.enumerated() {
      let object = OutgoingObject(
        name: "image-\(index)", size: UInt64(bytes.count), sha256: try SHA256Hasher.digest(of: bytes),
        coding: coding)
      objects.append(PushObject(object, from: MemorySource(bytes), base: base))
    }
    return try PushOperation(
      objects, transferID: try SHA256Hasher.digest(of: Data(contents.joined())), to: target, options: options,
      record: record, observe: observe, managerOptions: managerOptions(radio ?? sender),
      clock: engineClock)
  }

  /// Starts a push at this moment of simulated time, which stands still until the push has begun.
  func start(_ push: PushOperation) -> Task<PushOutcome, Never> {
    clock.beginActivity()
    return Task {
      let task = Task { try await push.run() }
      return await withTaskCancellationHandler {
        var events: [PushEvent] = []
        for await event in push.events {
          if events.isEmpty { clock.endActivity() }
          events.append(event)
        }
        if events.isEmpty { clock.endActivity() }
        return PushOutcome(result: await task.result, events: events)
      } onCancel: {
        task.cancel()
      }
    }
  }

  /// Runs a push, and does `work` at a moment on its way.
  func run(
    _ push: PushOperation, after delay: Duration, _ work: @escaping @Sendable () -> Void
  ) async -> PushOutcome {
    clock.beginActivity()
    let timer = clock.schedule(after: delay, work)
    let task = start(push)
    clock.endActivity()
    defer { timer.cancel() }
    return await task.value
  }
}

private final class MisuseLog: Sendable {
  let lines = PosixMutex([String]())
}

/// How a push has ended, and what it told.
struct PushOutcome: Sendable {
  let result: Result<PushReport, any Error>
  let events: [PushEvent]

  var error: TransferError? {
    if case .failure(let error) = result { error as? TransferError } else { nil }
  }
}

/// A running receiver.
final class Device: Sendable {
  private let task: Task<Void, any Error>
  private let seen = PosixMutex([ReceiveEvent]())

  init(_ operation: ReceiveOperation) async throws {
    task = Task { try await operation.run() }
    var iterator = operation.events.makeAsyncIterator()
    while let event = await iterator.next() {
      seen.withLock { $0.append(event) }
      if case .ready = event { return }
    }
    try await task.value
    throw TransferError(.radioUnavailable, "the receiver ended before it was ready")
  }

  /// Waits until it ends by itself.
  func end() async throws { try await task.value }

  /// Tells it to end, at this moment of simulated time.
  func cancel() { task.cancel() }

  /// Ends it, as its user would.
  func stop() async throws {
    cancel()
    try await end()
  }
}

/// Bytes that do not repeat, the same for each seed.
func image(_ count: Int, seed: UInt64 = 7) -> Data {
  var state = seed
  var bytes = Data(capacity: count + 8)
  while bytes.count < count {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    let word = state ^ (state >> 29)
    for shift in stride(from: 0, to: 64, by: 8) {
      bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
    }
  }
  return bytes.prefix(count)
}

extension PushOptions {
  /// As they are, over this carrier.
  init(via choice: CarrierChoice) {
    self.init()
    link.choice = choice
  }
}

extension PushOperation {
  /// All events, collected while it runs.
  func collect() async -> (result: Result<PushReport, TransferError>, events: [PushEvent]) {
    let events = events
    let listener = Task { await events.reduce(into: [PushEvent]()) { $0.append($1) } }
    let result: Result<PushReport, TransferError>
    do throws(TransferError) { result = .success(try await run()) } catch { result = .failure(error) }
    return (result, await listener.value)
  }
}
