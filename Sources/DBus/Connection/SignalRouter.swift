/// Who gets which signal, and who owns the names that rules speak of. Knows no connection.
///
/// Signals carry unique names. A rule with a well-known sender means its owner, so the router follows the owners; otherwise any peer
/// that sends straight to this connection could speak as that name.
struct SignalRouter {
  typealias Handler = @Sendable (DBusMessage) -> Void
  typealias Waiter = (Result<Void, DBusError>) -> Void

  struct Subscription {
    let token: DBusSubscription.Token
    let rule: MatchRule
    let handler: Handler
    let onEnd: @Sendable (DBusError) -> Void
  }

  private struct Name {
    var owner: String?
    /// Rules that speak of it.
    var users = 1
    /// Rules that wait until the owner is known; nil once it is.
    var waiters: [Waiter]?
  }

  private var subscriptions: [Subscription] = []
  private var names: [String: Name] = [:]

  // MARK: Subscriptions

  mutating func insert(_ subscription: Subscription) { subscriptions.append(subscription) }

  /// Removes a subscription; nil where there is none.
  mutating func remove(_ token: DBusSubscription.Token) -> Subscription? {
    guard let index = subscriptions.firstIndex(where: { $0.token === token }) else { return nil }
    return subscriptions.remove(at: index)
  }

  mutating func removeAll() -> [Subscription] {
    defer {
      subscriptions = []
      names = [:]
    }
    return subscriptions
  }

  /// Rules that wait for owners.
  mutating func takeWaiters() -> [Waiter] {
    let waiters = names.values.flatMap { $0.waiters ?? [] }
    for name in names.keys { names[name]?.waiters = nil }
    return waiters
  }

  /// Subscriptions for a signal, in the order in which they were made.
  func subscriptions(for message: DBusMessage) -> [Subscription] {
    subscriptions.filter { subscription in
      let owner = subscription.rule.sender.flatMap { names[$0]?.owner }
      return subscription.rule.matches(message, owner: owner)
    }
  }

  // MARK: Owners of names

  enum Use { case known, asked, first }

  /// Begins to follow a name; of ``Use/first`` the caller asks the bus.
  mutating func use(_ name: String, _ waiter: @escaping Waiter) -> Use {
    guard var entry = names[name] else {
      names[name] = Name(waiters: [waiter])
      return .first
    }
    entry.users += 1
    let isKnown = entry.waiters == nil
    entry.waiters?.append(waiter)
    names[name] = entry
    return isKnown ? .known : .asked
  }

  /// Ends a use; true if it was the last, and nobody has to follow the name.
  mutating func endUse(of name: String) -> Bool {
    guard var entry = names[name] else { return false }
    entry.users -= 1
    names[name] = entry.users > 0 ? entry : nil
    return entry.users <= 0
  }

  /// The bus has answered; returns who waits for it.
  mutating func setOwner(of name: String, _ owner: String?) -> [Waiter] {
    guard var entry = names[name] else { return [] }
    entry.owner = owner
    let waiters = entry.waiters ?? []
    entry.waiters = nil
    names[name] = entry
    return waiters
  }

  /// The bus has refused; returns who waits for it.
  mutating func forget(_ name: String) -> [Waiter] { names.removeValue(forKey: name)?.waiters ?? [] }

  /// A signal of the bus; others have no effect.
  mutating func follow(_ message: DBusMessage) {
    guard let change = NameChange(message), names[change.name] != nil else { return }
    // Waiters go on waiting: the answer to the question is on its way, and is not older than this.
    names[change.name]?.owner = change.owner
  }
}

/// What `NameOwnerChanged` says. Source: D-Bus Specification, "org.freedesktop.DBus.NameOwnerChanged".
struct NameChange {
  let name: String
  let owner: String?

  /// Nil for every other message, and where it does not come from the bus.
  init?(_ message: DBusMessage) {
    guard message.kind == .signal, message.sender == DBusWellKnown.bus,
      message.interface == DBusWellKnown.bus,
      message.member == "NameOwnerChanged",
      let (name, _, owner) = try? message.read(String.self, String.self, String.self)
    else { return nil }
    self.name = name
    self.owner = owner.isEmpty ? nil : owner
  }

  static func rule(_ name: String) -> MatchRule {
    MatchRule(
      sender: DBusWellKnown.bus, interface: DBusWellKnown.bus, member: "NameOwnerChanged",
      arguments: [0: .equals(name)])
  }
}
