internal import Foundation
public import Radio

/// A world of virtual adapters in one process that hear each other.
///
/// ```swift
/// let air = VirtualAir(clock: VirtualClock(.lockStep))
/// let phone = air.makeRadio(name: "phone")
/// let device = air.makeRadio(name: "device")
/// ```
///
/// Links between them carry real L2CAP frames over a simulated link layer. Advertising events take place every 100 to 110 ms, only
/// while somebody scans or wants a link; a link at rest costs nothing.
public final class VirtualAir: Sendable {
  /// The time of this air.
  public let clock: VirtualClock

  private let core: HostCore
  private let link: LinkParameters

  /// Makes an air without adapters.
  ///
  /// `link` describes links between radios that say nothing else. `seed` fixes what is random: packet errors and the
  /// instants of advertising. `faults` are played for each pair of radios, the first link to come. `capture` records all links;
  /// its `onFailure` must not use radios of this air.
  public init(
    clock: VirtualClock, link: LinkParameters = LinkParameters(), seed: UInt64 = 1,
    faults: FaultPlan = FaultPlan(), capture: BTSnoopWriter? = nil
  ) {
    self.clock = clock
    self.link = link
    core = HostCore(clock: clock) { clock in
      InProcessAir(clock: clock, seed: seed, faults: faults, capture: capture)
    }
  }

  /// Makes an adapter, switched on and in reach.
  ///
  /// Its identifier is made of its name, so it is the same in every run; a second adapter of the same name gets another.
  /// `link` nil: the air's. Where two radios differ, a link gets the smaller lengths and the worse air of both, and the
  /// peripheral's PHY, interval and timeout.
  public func makeRadio(name: String, link: LinkParameters? = nil) -> VirtualRadio {
    let parameters = link ?? self.link
    return core.run { state in
      let namesakes = state.adapters.values.filter { $0.name == name }.count
      let adapter = Adapter(
        id: state.makeIdentity(), name: name,
        peerID: PeerID(adapterName: namesakes == 0 ? name : "\(name)\u{0}\(namesakes)"),
        parameters: parameters)
      state.adapters[adapter.id] = adapter
      return VirtualRadio(name: name, core: core, adapter: adapter.id, peerID: adapter.peerID)
    }
  }

  /// Changes the state of an adapter. Switching off ends its links in order; `resetting` and below lose them without a word.
  public func setPower(_ state: AdapterState, of radio: VirtualRadio) {
    core.run { host in
      guard let adapter = host.adapters[radio.adapter] else { return }
      host.setState(state, of: adapter, isOrderly: state == .poweredOff)
    }
  }

  /// Takes an adapter out of reach of all others, or brings it back; links then end with their supervision timeout.
  public func setInReach(_ isInReach: Bool, of radio: VirtualRadio) {
    core.run { host in
      guard let adapter = host.adapters[radio.adapter] else { return }
      host.surroundings.setInReach(isInReach, of: adapter, host)
    }
  }

  /// Makes new links of a radio's central role refuse writes without response at first, as some stacks do.
  ///
  /// The end of that time is told by `readyToWrite` to those who were refused, or, where `isAnnounced` is false, by nothing:
  /// `canWriteWithoutResponse` just becomes true. nil: no such time.
  public func setStartHold(_ time: Duration?, isAnnounced: Bool = true, of radio: VirtualRadio) {
    core.run { $0.adapters[radio.adapter]?.startHold = time.map { ($0, isAnnounced) } }
  }

  /// Replaces the faults, also of links that exist: octets and times count from now.
  public func setFaults(_ faults: FaultPlan) {
    core.run { $0.surroundings.setFaults(faults) }
  }

  /// What the links between two radios did with their time until now, as seen by what `sender` had to send.
  public func usage(from sender: VirtualRadio, to receiver: VirtualRadio) -> LinkUsage {
    core.run { host in
      (host.surroundings as? InProcessAir)?.usage(from: sender.adapter, to: receiver.adapter) ?? LinkUsage()
    }
  }

  /// Tells the size of the payload, so that faults at a share of it have their place.
  public func resolveFaults(totalBytes: Int) {
    core.run { $0.surroundings.resolveFaults(totalBytes: totalBytes) }
  }
}

extension PeerID {
  /// The identifier of an adapter with a name: 122 bits of the name's FNV-1a hashes, as a UUID of version 8 (RFC 9562 5.8).
  init(adapterName name: String) {
    var bytes: [UInt8] = []
    for basis: UInt64 in [0xCBF2_9CE4_8422_2325, 0x9AE1_6A3B_2F90_404F] {
      let hash = FNV1a.hash(name.utf8, basis: basis)
      for shift in stride(from: UInt64(0), to: 64, by: 8) {
        bytes.append(UInt8(truncatingIfNeeded: hash >> shift))
      }
    }
    bytes[6] = bytes[6] & 0x0F | 0x80
    bytes[8] = bytes[8] & 0x3F | 0x80
    self.init(
      UUID(
        uuid: (
          bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8],
          bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
        )))
  }
}
