internal import Radio

/// What carries the frames of a link. Called, and calls back, under the lock of the ``HostCore``.
protocol LinkMedium: AnyObject {
  /// Takes a whole L2CAP frame; false where the link cannot hold it: then the link is broken.
  func send(_ frame: [UInt8], from side: LinkSide) -> Bool

  /// Ends the link in order, as one side wants.
  func terminate(by side: LinkSide)

  /// Lets one side fall silent without a word, as when its power is cut.
  func vanish(_ side: LinkSide)

  /// Changes the connection interval.
  func setInterval(_ interval: Duration)

  /// What becomes of the ready signal that the central's writers are about to get.
  func readySignal() -> FaultScript.ReadySignal
}

/// The central's end of a link where the central lives in another process. Called under the lock of the ``HostCore``.
protocol RemoteCentral: AnyObject {
  /// Whether it is behind with what it was given: the link should stand still.
  var isCongested: Bool { get }

  /// A frame has arrived at the central.
  func received(_ frame: [UInt8])

  /// The link has carried frames of the central.
  func completed(_ frames: Int)

  /// The link has other parameters now.
  func parametersChanged(_ parameters: LinkParameters)

  /// The ATT MTU was changed by a fault.
  func mtuChanged(_ mtu: Int)

  /// The link is gone.
  func ended(_ reason: LinkEnd)
}

/// Where an adapter finds others, and the owner of the links that are simulated here. Called under the lock of the ``HostCore``.
protocol Surroundings: AnyObject {
  /// Where links are recorded.
  var capture: BTSnoopWriter? { get }

  /// Whether anything goes wrong on purpose between two devices.
  func hasFaults(_ pair: DevicePair) -> Bool

  /// A scan, a wish for a link, an advertisement or an adapter's state has changed.
  func interestChanged(_ host: HostState)

  /// Why an adapter cannot advertise, if so; else it can from now on.
  func obstacleToAdvertising(_ adapter: Adapter) -> RadioError?

  /// The name of a device of which there is a trace though it was not heard, as a host remembers devices of former runs; nil: none.
  func rememberedName(of peer: PeerID) -> String?

  /// Makes an adapter unreachable, or reachable again.
  func setInReach(_ isInReach: Bool, of adapter: Adapter, _ host: HostState)

  /// A link that is simulated here.
  func link(_ id: UInt64) -> AirLink?

  /// A link has ended.
  func remove(_ link: AirLink)

  /// Replaces what goes wrong, which then begins anew.
  func setFaults(_ plan: FaultPlan)

  /// Turns shares of a payload into places.
  func resolveFaults(totalBytes: Int)

  /// Lets the script of a pair decide something.
  func withScript<Result>(of pair: DevicePair, _ body: (inout FaultScript) -> Result) -> Result
}

extension Surroundings {
  func obstacleToAdvertising(_ adapter: Adapter) -> RadioError? { nil }
}

/// Two devices that a link may join, with its direction.
struct DevicePair: Hashable {
  var central: UInt64
  var peripheral: UInt64
}
