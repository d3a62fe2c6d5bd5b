internal import Dispatch
public import Radio
internal import Readiness

extension VirtualRadio {
  /// Makes the radio of this process in an air that processes share: the directory `directory`, which is made if it is not there.
  ///
  /// `name` is how the adapter is called, 1 to 248 octets. As soon as it advertises, the name is taken in the directory until the radio
  /// and its clients are released, and a process that wants the same name is refused with ``VirtualAirError/Code/nameTaken``. Identifiers
  /// of peers are made of names, so a peripheral's is the same after a restart; a central that does not hold its name has another each time.
  /// `clock` is real or unpaced; the process of the peripheral simulates the link, with its clock. `faults` go wrong on all links of this
  /// radio; where both sides bring some, the central's do. `capture` records the links of this process.
  public convenience init(
    directory: String, name: String, clock: VirtualClock, link: LinkParameters = LinkParameters(),
    seed: UInt64 = 1, faults: FaultPlan = FaultPlan(), capture: BTSnoopWriter? = nil
  ) throws(VirtualAirError) {
    guard clock.mode != .lockStep else {
      throw VirtualAirError(
        .clock, "virtual:\(directory) cannot run in lock-step: processes do not share a simulated clock")
    }
    guard (1...AirMessage.longestName).contains(name.utf8.count) else {
      throw VirtualAirError(
        .badName,
        "the name \"\(name)\" has \(name.utf8.count) octets; it must have 1...\(AirMessage.longestName)")
    }
    let air = try AirDirectory(path: directory)
    let queue = DispatchQueue(label: "VirtualRadio.DirectoryAir")
    guard let monitor = ReadinessMonitor(queue: queue) else {
      throw VirtualAirError(.socket, "virtual:\(directory): this process has no file descriptor left")
    }
    let core = HostCore(clock: clock) { clock in
      DirectoryAir(
        clock: clock, directory: air, monitor: monitor, seed: seed, faults: faults, capture: capture)
    }
    let peerID = PeerID(adapterName: name)
    let adapter = core.run { state in
      let adapter = Adapter(id: state.makeIdentity(), name: name, peerID: peerID, parameters: link)
      state.adapters[adapter.id] = adapter
      return adapter.id
    }
    self.init(name: "virtual:\(directory)", core: core, adapter: adapter, peerID: peerID)
  }

  /// Takes the radio's name in its directory now, instead of when it first advertises; does nothing in an air without directory.
  public func takeName() throws(VirtualAirError) {
    let result = core.run { state -> Result<Void, VirtualAirError> in
      guard let air = state.surroundings as? DirectoryAir, let adapter = state.adapters[adapter] else {
        return .success(())
      }
      do throws(VirtualAirError) {
        try air.takeName(of: adapter)
        return .success(())
      } catch {
        return .failure(error)
      }
    }
    try result.get()
  }
}

extension VirtualRadio {
  /// Replaces the faults, which then begin anew; in a directory, for links that this radio makes from now on and for those it has as a
  /// peripheral.
  public func setFaults(_ faults: FaultPlan) { core.run { $0.surroundings.setFaults(faults) } }

  /// Tells the size of the payload, so that faults at a share of it have their place.
  public func resolveFaults(totalBytes: Int) {
    core.run { $0.surroundings.resolveFaults(totalBytes: totalBytes) }
  }

  /// Changes the state of the adapter. Switching off ends its links in order; `resetting` and below lose them without a word.
  public func setPower(_ state: AdapterState) {
    core.run { host in
      guard let adapter = host.adapters[adapter] else { return }
      host.setState(state, of: adapter, isOrderly: state == .poweredOff)
    }
  }

  /// Takes the adapter out of reach of all others, or brings it back; links then end with their supervision timeout.
  public func setInReach(_ isInReach: Bool) {
    core.run { host in
      guard let adapter = host.adapters[adapter] else { return }
      host.surroundings.setInReach(isInReach, of: adapter, host)
    }
  }
}
