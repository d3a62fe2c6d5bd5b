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

/// Where an adapter finds others. Called under the lock of the ``HostCore``.
protocol Surroundings: AnyObject {
  /// A scan, a wish for a link, an advertisement or an adapter's state has changed.
  func interestChanged(_ host: HostState)
}
