internal import BulkTransfer
internal import CoreBluetooth
internal import Foundation
internal import Radio
internal import VirtualRadio

/// One transfer that is measured: so many bytes to a device, over one carrier.
struct BenchRun: Sendable {
  let size: Int
  let seed: UInt64
  let carrier: CarrierKind
  let options: PushOptions

  init(size: Int, seed: UInt64, carrier: CarrierKind, options: PushOptions) {
    self.size = size
    self.seed = seed
    self.carrier = carrier
    var options = options
    options.link.choice = carrier == .gatt ? .gatt : .l2cap
    self.options = options
  }

  /// The name of the object at the receiver.
  static let objectName = "bluehaul-bench.bin"
  static let deviceName = "bench-device"

  /// Sends to a simulated device with a flash of `profile`, which is made for this run.
  func measure(
    on air: VirtualAir, link: LinkParameters, flash profile: SimulatedFlash.Profile
  ) async throws -> BenchResult {
    var profile = profile
    profile.capacity = UInt64(size) + 1 << 20
    let device = try SimulatedDevice(
      name: Self.deviceName, flash: SimulatedFlash(profile: profile), air: air, senderName: "bench-sender")
    let ledger = SharedLedger()
    let push = try push(
      to: .name(Self.deviceName), radio: device.sender, clock: device.time, ledger,
      usage: { [air, sender = device.sender, radio = device.radio] in air.usage(from: sender, to: radio) })
    _ = try await device.run { try await push.run() }
    return try result(ledger, link: link)
  }

  /// Sends to a device in reach of `radio`; progress is shown by `printer`.
  func measure(
    to target: DeviceTarget, on radio: any Radio, printer: any EventPrinter
  ) async throws -> BenchResult {
    let ledger = SharedLedger()
    let push = try push(to: target, radio: radio, clock: RadioTime(radio.clock), ledger, usage: { nil })
    let view = TransferView([(name: Self.objectName, size: size)], ceiling: { _ in nil })
    _ = try await push.run(view, on: printer)
    return try result(ledger, link: nil)
  }

  private func push(
    to target: DeviceTarget, radio: any Radio, clock: RadioTime, _ ledger: SharedLedger,
    usage: @escaping @Sendable () -> LinkUsage?
  ) throws(TransferError) -> PushOperation {
    let source = PatternSource(size: UInt64(size), seed: seed)
    let digest = try source.digest()
    let object = OutgoingObject(name: Self.objectName, size: source.size, sha256: digest)
    return try PushOperation(
      [PushObject(object, from: source)], transferID: digest, to: target, options: options,
      observe: { activity, now in
        let usage = usage()
        ledger.note(activity, usage: usage, now: now)
      }, managerOptions: [CBManagerOptionRadioKey: radio], clock: clock)
  }

  private func result(
    _ ledger: SharedLedger, link: LinkParameters?
  ) throws(TransferError) -> BenchResult {
    let ledger = ledger.value
    guard let duration = ledger.duration, duration > .zero else {
      throw TransferError(
        .unsupportedDevice, "the device had all of it already: nothing was measured",
        advice: "give another --seed, or remove \(Self.objectName) there")
    }
    let via = carrier == .gatt ? BenchMode.Via.gatt : .l2cap
    return BenchResult(
      mode: BenchMode(via: via, direction: .toDevice), link: link, size: size, duration: duration,
      transfer: ledger.transfer, breakdown: ledger.breakdown, carried: ledger.carried, points: ledger.points)
  }
}
