internal import Foundation

/// A search for a device: what was seen so far, and when it is decided.
///
/// - By identifier or by one of several, or where any device will do, the first sight decides.
/// - By name, a device of that name decides once ``ConnectionConfiguration/settleTime`` has shown no other.
/// - A device that is remembered by that name and is not seen is tried after ``ConnectionConfiguration/memoryPatience``, while the scan
///   goes on.
struct DeviceSearch: Sendable {
  /// What comes next.
  enum Step {
    /// Nothing new.
    case wait
    /// Begin to scan.
    case scan
    /// This one it is.
    case take(UUID)
    /// Connect to the remembered device, and go on scanning.
    case tryMemory(UUID)
    case ambiguous([DeviceSighting])
    case notFound
  }

  /// More than enough to say that a name is ambiguous.
  private static let most = 8

  private let target: DeviceTarget
  /// The device that was found before, or was asked for by its identifier.
  private let wanted: UUID?
  private var memory: UUID?
  private let memoryName: String?
  private let configuration: ConnectionConfiguration
  private var candidates: [DeviceSighting] = []
  private var settled: Duration?
  private var memoryDue: Duration?
  /// Whether a scan is on.
  private(set) var isScanning = false
  /// When the search is given up.
  let end: Duration?

  init(
    target: DeviceTarget, wanted: UUID?, memory: UUID?, memoryName: String?,
    configuration: ConnectionConfiguration, now: Duration
  ) {
    self.target = target
    self.wanted = wanted
    self.memory = memory
    self.memoryName = memoryName
    self.configuration = configuration
    end = configuration.findLimit.map { now + $0 }
  }

  /// When time itself decides something.
  var deadline: Duration? {
    Duration.earliest(Duration.earliest(settled, candidates.isEmpty ? memoryDue : nil), end)
  }

  mutating func forgetMemory() {
    memory = nil
    memoryDue = nil
  }

  /// What the host knows: the devices that were asked for, and those that are connected to it.
  mutating func known(_ devices: [DeviceSighting], now: Duration) -> Step {
    if let wanted, devices.contains(where: { $0.identifier == wanted }) { return .take(wanted) }
    if wanted == nil, let own = devices.first(where: { target.candidates.contains($0.identifier) }) {
      return .take(own.identifier)
    }
    if let memory, let own = devices.first(where: { $0.identifier == memory }) {
      switch target {
      case .any: return .take(memory)
      case .name(let name):
        let isSame = own.knownName.map { $0 == name || $0 == memoryName } ?? true
        if isSame { memoryDue = now + configuration.memoryPatience }
      case .identifier, .oneOf: break
      }
    }
    isScanning = true
    for device in devices where device.isConnected && wanted == nil && target.matches(device) {
      if case .take(let id) = add(device, now: now) {
        isScanning = false
        return .take(id)
      }
    }
    return .scan
  }

  mutating func sighted(_ device: DeviceSighting, now: Duration) -> Step {
    if device.identifier == wanted { return .take(device.identifier) }
    guard target.matches(device) else { return .wait }
    return add(device, now: now)
  }

  private mutating func add(_ device: DeviceSighting, now: Duration) -> Step {
    if let place = candidates.firstIndex(where: { $0.identifier == device.identifier }) {
      candidates[place] = device
      return .wait
    }
    guard candidates.count < Self.most else { return .wait }
    candidates.append(device)
    guard case .name = target, configuration.settleTime > .zero else { return .take(device.identifier) }
    if settled == nil { settled = now + configuration.settleTime }
    return .wait
  }

  mutating func timePassed(now: Duration) -> Step {
    let isOver = end.map { now >= $0 } ?? false
    if let settled, now >= settled || isOver, let first = candidates.first {
      return candidates.count > 1 ? .ambiguous(candidates) : .take(first.identifier)
    }
    if isOver { return .notFound }
    if candidates.isEmpty, let due = memoryDue, now >= due, let memory {
      memoryDue = nil
      return .tryMemory(memory)
    }
    return .wait
  }
}

extension TransferError {
  static func notFound(_ target: DeviceTarget, within limit: Duration?) -> TransferError {
    TransferError(
      .deviceNotFound, "\(target) was not found within \(limit?.description ?? "the time allowed")",
      advice: "check that it advertises and is near; bluehaul scan lists what is there", isRetriable: true)
  }

  static func ambiguous(_ target: DeviceTarget, _ devices: [DeviceSighting]) -> TransferError {
    let list = devices.map(\.inWords).joined(separator: ", ")
    return TransferError(
      .ambiguousDevice, "\(devices.count) devices are called \(target): \(list)",
      advice: "say which one by its identifier")
  }
}
