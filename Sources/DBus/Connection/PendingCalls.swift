/// Calls that wait for their replies, by serial, and the time when they stop to wait. Knows no clock and no connection.
struct PendingCalls<Completion> {
  private struct Call {
    let destination: String?
    let deadline: Duration?
    let completion: Completion
  }

  private var calls: [UInt32: Call] = [:]
  /// Not later than the first deadline; earlier where that call was answered meanwhile, so that answering costs no search.
  private(set) var nextDeadline: Duration?

  var count: Int { calls.count }

  mutating func insert(_ serial: UInt32, destination: String?, deadline: Duration?, _ completion: Completion)
  {
    calls[serial] = Call(destination: destination, deadline: deadline, completion: completion)
    if let deadline { nextDeadline = min(nextDeadline ?? deadline, deadline) }
  }

  /// Whose reply it is, where `sender` may answer: the bus may for everyone, and of well-known names the bus has seen to it.
  mutating func take(_ serial: UInt32, from sender: String?) -> Completion? {
    guard let call = calls[serial] else { return nil }
    if let destination = call.destination, DBusName.isUnique(destination), sender != destination,
      sender != DBusWellKnown.bus
    {
      return nil
    }
    return take(serial)
  }

  /// A call that is not to wait longer.
  mutating func take(_ serial: UInt32) -> Completion? {
    guard let call = calls.removeValue(forKey: serial) else { return nil }
    if calls.isEmpty { nextDeadline = nil }
    return call.completion
  }

  /// Calls whose time is over, in the order of their deadlines.
  mutating func expire(_ now: Duration) -> [Completion] {
    let late = calls.compactMap { serial, call in
      call.deadline.flatMap { $0 <= now ? (deadline: $0, serial: serial) : nil }
    }
    let completions = late.sorted { ($0.deadline, $0.serial) < ($1.deadline, $1.serial) }
      .compactMap { calls.removeValue(forKey: $0.serial)?.completion }
    nextDeadline = calls.values.compactMap(\.deadline).min()
    return completions
  }

  /// All calls, in the order in which they were made.
  mutating func removeAll() -> [Completion] {
    defer {
      calls = [:]
      nextDeadline = nil
    }
    return calls.sorted { $0.key < $1.key }.map(\.value.completion)
  }
}
