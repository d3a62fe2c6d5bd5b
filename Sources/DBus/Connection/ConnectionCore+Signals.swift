extension ConnectionCore {
  /// Adds a rule at the bus and delivers from then on; signals may come before the completion.
  func subscribe(
    _ subscription: SignalRouter.Subscription,
    _ completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
  ) {
    do { try subscription.rule.check() } catch { return completion(.failure(error)) }
    if let end { return completion(.failure(end)) }
    guard let sender = subscription.rule.sender, MatchRule.needsOwner(sender) else {
      return addRule(subscription, completion)
    }
    follow(sender) { [weak self] result in
      switch result {
      case .success: self?.addRule(subscription, completion)
      case .failure(let error): completion(.failure(error))
      }
    }
  }

  private func addRule(
    _ subscription: SignalRouter.Subscription,
    _ completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
  ) {
    guard !subscription.token.isCancelled else {
      unfollowSender(of: subscription)
      return completion(.failure(.cancelled))
    }
    router.insert(subscription)
    callBus("AddMatch", [.string(subscription.rule.text)]) { [weak self] result in
      if case .failure(let error) = result {
        if let self, router.remove(subscription.token) != nil { unfollowSender(of: subscription) }
        return completion(.failure(error))
      }
      completion(.success(()))
    }
  }

  /// Ends a subscription; idempotent.
  func unsubscribe(_ token: DBusSubscription.Token) {
    guard let subscription = router.remove(token) else { return }
    postToBus("RemoveMatch", [.string(subscription.rule.text)])
    unfollowSender(of: subscription)
  }

  private func unfollowSender(of subscription: SignalRouter.Subscription) {
    guard let sender = subscription.rule.sender, MatchRule.needsOwner(sender), router.endUse(of: sender)
    else {
      return
    }
    postToBus("RemoveMatch", [.string(NameChange.rule(sender).text)])
  }

  /// First the rule, then the question: so no change falls between them.
  private func follow(_ name: String, _ completion: @escaping SignalRouter.Waiter) {
    switch router.use(name, completion) {
    case .known: return completion(.success(()))
    case .asked: return
    case .first: break
    }
    callBus("AddMatch", [.string(NameChange.rule(name).text)]) { [weak self] result in
      guard case .failure(let error) = result, let self else { return }
      for waiter in router.forget(name) { waiter(.failure(error)) }
    }
    askOwner(of: name) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success(let owner):
        for waiter in router.setOwner(of: name, owner) { waiter(.success(())) }
      case .failure(let error):
        for waiter in router.forget(name) { waiter(.failure(error)) }
      }
    }
  }

  /// Who has the name now; nil if nobody. Source: D-Bus Specification, "org.freedesktop.DBus.GetNameOwner".
  func askOwner(of name: String, _ completion: @escaping @Sendable (Result<String?, DBusError>) -> Void) {
    callBus("GetNameOwner", [.string(name)]) { result in
      switch result {
      case .success(let reply):
        completion(Result { () throws(DBusError) in try reply.read(String.self) })
      case .failure(let error) where error.kind == .reply && error.name == DBusErrorName.nameHasNoOwner:
        completion(.success(nil))
      case .failure(let error):
        completion(.failure(error))
      }
    }
  }

  func deliver(_ message: DBusMessage) {
    router.follow(message)
    for subscription in router.subscriptions(for: message) where !subscription.token.isCancelled {
      subscription.handler(message)
    }
  }

  /// Tells the bus something and wants no answer.
  private func postToBus(_ member: String, _ body: [DBusValue]) {
    guard
      var message = try? DBusMessage.call(
        destination: DBusWellKnown.bus, path: DBusWellKnown.busPath, interface: DBusWellKnown.bus,
        member: member, body: body)
    else { return }
    message.expectsReply = false
    post(message)
  }
}
