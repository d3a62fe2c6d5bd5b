import Radio
import Testing

@testable import BlueZRadio

@Suite("Services one after the other") struct ServiceBookTests {
  private let first = LocalService.plain(1, [.plain(1)])
  private let second = LocalService.plain(2, [.plain(2)])
  private let failure = RadioError(.other, "no")

  @Test("The next is registered when the one before was answered, and each answer is passed on once")
  func order() {
    var book = ServiceBook()
    #expect(book.add(first) == [.register(1, [first])])
    #expect(book.add(second) == [])
    #expect(book.registered(1, .success(())) == [.answer(first.id, nil), .register(2, [second])])
    #expect(book.registered(1, .success(())) == [])
    #expect(book.registered(2, .failure(failure)) == [.answer(second.id, failure)])
    #expect(book.removeAll() == [.unregister(1)])
    #expect(book.removeAll() == [])
  }

  @Test("What is there already is refused", arguments: [true, false])
  func twice(isRegistered: Bool) {
    var book = ServiceBook()
    _ = book.add(first)
    if isRegistered { _ = book.registered(1, .success(())) }
    for service in [first, LocalService.plain(3, [.plain(1)])] {
      guard case .answer(service.id, let error?)? = book.add(service).first else {
        Issue.record("taken")
        continue
      }
      #expect(error.code == .invalidParameters)
    }
    _ = book.remove(first.id)
    #expect(book.add(first).allSatisfy { if case .answer = $0 { false } else { true } })
  }

  @Test("A registration that runs is taken back once it was answered", arguments: [true, false])
  func removedWhileRegistering(succeeds: Bool) {
    var book = ServiceBook()
    _ = book.add(first)
    guard case .answer(first.id, let error?)? = book.remove(first.id).first else {
      Issue.record("not answered")
      return
    }
    #expect(error.code == .cancelled)
    #expect(book.remove(first.id) == [])
    // The same service again waits for that.
    #expect(book.add(first) == [])
    let steps = book.registered(1, succeeds ? .success(()) : .failure(failure))
    #expect(steps == (succeeds ? [.unregister(1)] : []) + [.register(2, [first])])
    #expect(book.registered(2, .success(())) == [.answer(first.id, nil)])
  }

  @Test("One that waits is never asked for")
  func removedWhileWaiting() {
    var book = ServiceBook()
    _ = book.add(first)
    _ = book.add(second)
    guard case .answer(second.id, let error?)? = book.remove(second.id).first else {
      Issue.record("not answered")
      return
    }
    #expect(error.code == .cancelled)
    #expect(book.registered(1, .success(())) == [.answer(first.id, nil)])
  }

  // MARK: Included services

  private let outer = LocalService.plain(
    9, [.plain(9)], includes: [LocalServiceID(1), LocalServiceID(2)])
  private var plainOuter: LocalService {
    var service = outer
    service.includedServices = []
    return service
  }

  /// Two services, and a third that includes them, up to its registration, which is the third.
  private func bookWithIncludes() -> ServiceBook {
    var book = ServiceBook()
    _ = book.add(first)
    _ = book.add(second)
    _ = book.add(outer)
    _ = book.registered(1, .success(()))
    #expect(
      book.registered(2, .success(())) == [
        .answer(second.id, nil), .move(1), .move(2), .register(3, [first, second, outer]),
      ])
    return book
  }

  @Test("A service moves into one application with those that it includes")
  func includes() {
    var book = bookWithIncludes()
    #expect(book.registered(3, .success(())) == [.answer(outer.id, nil)])
    #expect(book.removeAll() == [.unregister(3)])
  }

  @Test("Without the others, there is nothing to include")
  func missingInclude() {
    var book = ServiceBook()
    _ = book.add(first)
    guard case .answer(outer.id, let error?)? = book.add(outer).first else {
      Issue.record("taken")
      return
    }
    #expect(error.code == .invalidParameters)
    // One that is taken back, or refused, before its turn comes.
    for isRefused in [true, false] {
      var book = ServiceBook()
      _ = book.add(first)
      _ = book.add(second)
      _ = book.add(outer)
      if !isRefused { _ = book.remove(second.id) }
      var steps = book.registered(1, .success(()))
      if isRefused { steps += book.registered(2, .failure(failure)) }
      #expect(steps.contains { if case .answer(outer.id, .some) = $0 { true } else { false } })
      #expect(book.removeAll() == [.unregister(1)])
    }
  }

  @Test("Where the daemon does not take them together, the others come back as they were")
  func refusedIncludes() {
    var book = bookWithIncludes()
    #expect(book.registered(3, .failure(failure)) == [.answer(outer.id, failure), .register(5, [first])])
    #expect(book.registered(5, .success(())) == [.register(4, [second])])
    // What was there and cannot be had again is not silent.
    #expect(book.registered(4, .failure(failure)) == [.lost(second.id, failure)])
    #expect(book.removeAll() == [.unregister(5)])
  }

  @Test(
    "One that leaves an application leaves the others there, however far they are", arguments: [true, false])
  func removedInclude(isRegistered: Bool) {
    var book = bookWithIncludes()
    var rest = outer
    rest.includedServices = [second.id]
    var steps = isRegistered ? book.registered(3, .success(())) : []
    steps += book.remove(first.id)
    if !isRegistered { steps += book.registered(3, .success(())) }
    #expect(
      steps == (isRegistered ? [.answer(outer.id, nil)] : []) + [.move(3), .register(4, [second, rest])])
    #expect(book.registered(4, .success(())) == (isRegistered ? [] : [.answer(outer.id, nil)]))
    #expect(book.remove(second.id) == [.move(4), .register(5, [plainOuter])])
    #expect(book.registered(5, .success(())) == [])
    #expect(book.remove(outer.id) == [.unregister(5)])
  }

  @Test("Where the daemon goes, whoever waits is answered and late answers mean nothing")
  func withdrawal() {
    var book = ServiceBook()
    _ = book.add(first)
    _ = book.add(second)
    #expect(book.withdraw() == [.answer(first.id, .poweredDown), .answer(second.id, .poweredDown)])
    #expect(book.registered(1, .success(())) == [])
    #expect(book.add(first) == [.register(3, [first])])
    #expect(book.registered(3, .success(())) == [.answer(first.id, nil)])
    #expect(book.withdraw() == [])
    #expect(book.removeAll() == [])
  }
}

@Suite("Advertising step by step") struct AdvertisingStateTests {
  private let advertisement = Advertisement(localName: "D")
  private let failure = RadioError(.outOfSpace, "no")

  @Test("Started, stopped and started again, each with a path of its own")
  func cycle() {
    var state = AdvertisingState()
    for number in 1...50 as ClosedRange<UInt64> {
      #expect(state.start(advertisement) == [.register(number, advertisement)])
      #expect(state.registered(number, .success(())) == [.answer(nil)])
      #expect(state.stop() == [.unregister(number)])
      #expect(state.stop() == [])
    }
  }

  @Test("A second start is refused and changes nothing", arguments: [true, false])
  func twice(isAnswered: Bool) {
    var state = AdvertisingState()
    _ = state.start(advertisement)
    if isAnswered { _ = state.registered(1, .success(())) }
    guard case .answer(let error?)? = state.start(Advertisement()).first else {
      Issue.record("taken")
      return
    }
    #expect(error.code == .alreadyAdvertising)
    if !isAnswered { #expect(state.registered(1, .success(())) == [.answer(nil)]) }
    #expect(state.stop() == [.unregister(1)])
  }

  @Test("Stopped before the answer: answered at once, and taken back when it can be")
  func stoppedEarly() {
    var state = AdvertisingState()
    _ = state.start(advertisement)
    guard case .answer(let error?)? = state.stop().first else {
      Issue.record("not answered")
      return
    }
    #expect(error.code == .cancelled)
    // One at a time.
    #expect(state.start(advertisement) == [])
    #expect(state.registered(1, .success(())) == [.unregister(1), .register(2, advertisement)])
    #expect(state.registered(2, .success(())) == [.answer(nil)])
  }

  @Test("Stopped and nothing else, while the answer was a failure or a success", arguments: [true, false])
  func stoppedForGood(succeeds: Bool) {
    var state = AdvertisingState()
    _ = state.start(advertisement)
    _ = state.stop()
    #expect(state.isRunning)
    #expect(
      state.registered(1, succeeds ? .success(()) : .failure(failure)) == (succeeds ? [.unregister(1)] : []))
    #expect(!state.isRunning)
    #expect(state.start(advertisement) == [.register(2, advertisement)])
  }

  @Test("A failure is told, and the next start begins anew")
  func failed() {
    var state = AdvertisingState()
    _ = state.start(advertisement)
    #expect(state.registered(1, .failure(failure)) == [.answer(failure)])
    #expect(state.start(advertisement) == [.register(2, advertisement)])
  }

  @Test("With the power comes another registration, which nobody is told of")
  func power() {
    var state = AdvertisingState()
    #expect(state.resume() == [])
    _ = state.start(advertisement)
    #expect(state.resume() == [])
    _ = state.registered(1, .success(()))
    #expect(state.resume() == [.unregister(1), .register(2, advertisement)])
    #expect(state.registered(2, .failure(failure)) == [.lost(failure)])
    #expect(state.resume() == [.register(3, advertisement)])
    #expect(state.registered(3, .success(())) == [])
    #expect(state.stop() == [.unregister(3)])
  }

  @Test(
    "What the daemon lets go of is registered again after a while, if it is still wanted",
    arguments: [true, false])
  func released(isWanted: Bool) {
    var state = AdvertisingState()
    _ = state.start(advertisement)
    _ = state.registered(1, .success(()))
    #expect(state.released(7) == [])
    #expect(state.released(1) == [.retryLater])
    if !isWanted { #expect(state.stop() == []) }
    #expect(state.retry() == (isWanted ? [.register(2, advertisement)] : []))
    #expect(state.retry() == [])
  }

  @Test("The daemon goes", arguments: [true, false])
  func withdrawal(isAnswered: Bool) {
    var state = AdvertisingState()
    _ = state.start(advertisement)
    if isAnswered { _ = state.registered(1, .success(())) }
    #expect(state.withdraw() == (isAnswered ? [] : [.answer(.poweredDown)]))
    #expect(state.resume() == [])
    #expect(state.stop() == [])
  }
}
