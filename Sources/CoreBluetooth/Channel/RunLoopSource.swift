internal import CoreFoundation
internal import Locking
internal import Foundation
internal import Radio

/// A source of events on run loops: what keeps a loop running, and what makes `run(mode:before:)` return once it was handled.
///
/// Sendable: Core Foundation guards sources and run loops, and what changes here is behind a lock.
final class RunLoopSource: @unchecked Sendable {
  /// A run loop and a mode in which events are wanted; without the Core Foundation object until that was found on the loop's own thread.
  private struct Place: @unchecked Sendable {
    var runLoop: RunLoop
    var mode: RunLoop.Mode
    var loop: CFRunLoop?

    func isIn(_ runLoop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
      self.runLoop === runLoop && self.mode == mode
    }
  }

  /// What Core Foundation holds.
  private final class Target: Sendable {
    let perform: @Sendable () -> Void

    init(perform: @escaping @Sendable () -> Void) { self.perform = perform }
  }

  private let places = PosixMutex<[Place]>([])
  private let source: CFRunLoopSource?

  /// Makes a source that calls `perform` on one of its run loops after ``signal()``.
  init(perform: @escaping @Sendable () -> Void) {
    var context = unsafe CFRunLoopSourceContext()
    // Owned by the source, which releases it when it goes.
    unsafe context.info = Unmanaged.passRetained(Target(perform: perform)).toOpaque()
    unsafe context.release = { info in
      if let info = unsafe info { unsafe Unmanaged<Target>.fromOpaque(info).release() }
    }
    unsafe context.perform = { info in
      guard let info = unsafe info else { return }
      unsafe Unmanaged<Target>.fromOpaque(info).takeUnretainedValue().perform()
    }
    source = unsafe CFRunLoopSourceCreate(nil, 0, &context)
  }

  deinit { if let source { CFRunLoopSourceInvalidate(source) } }

  /// Whether events are wanted anywhere.
  var isScheduled: Bool { places.withLock { !$0.isEmpty } }

  /// Adds the source to a run loop, once.
  func add(to runLoop: RunLoop, _ mode: RunLoop.Mode) {
    let place = Place(runLoop: runLoop, mode: mode, loop: Self.loop(of: runLoop))
    let isNew = places.withLock { places in
      guard !places.contains(where: { $0.isIn(place.runLoop, place.mode) }) else { return false }
      places.append(place)
      return true
    }
    guard isNew else { return }
    if let loop = place.loop {
      attach(to: loop, mode)
    } else {
      // Foundation tells the Core Foundation object on the loop's own thread only. The timer wakes it, which `perform` alone does not.
      runLoop.perform(inModes: [mode]) { [weak self] in self?.arrive(mode) }
      runLoop.add(Timer(fire: Date(), interval: 0, repeats: false) { _ in }, forMode: mode)
    }
  }

  /// Removes the source from a run loop.
  func remove(from runLoop: RunLoop, _ mode: RunLoop.Mode) {
    let place = Place(runLoop: runLoop, mode: mode)
    let removed = places.withLock { places -> Place? in
      guard let i = places.firstIndex(where: { $0.isIn(place.runLoop, place.mode) }) else { return nil }
      return places.remove(at: i)
    }
    if let loop = removed?.loop, let source { CFRunLoopRemoveSource(loop, source, Self.name(of: mode)) }
  }

  /// Removes the source from all run loops.
  func removeAll() {
    let removed = places.withLock { places in
      defer { places = [] }
      return places
    }
    guard let source else { return }
    for place in removed {
      if let loop = place.loop { CFRunLoopRemoveSource(loop, source, Self.name(of: place.mode)) }
    }
  }

  /// Has `perform` called on one of the run loops, once for all signals until then.
  func signal() {
    guard let source else { return }
    CFRunLoopSourceSignal(source)
    for place in places.withLock({ $0 }) {
      if let loop = place.loop { CFRunLoopWakeUp(loop) }
    }
  }

  /// On the thread of a run loop to which the source was added elsewhere.
  private func arrive(_ mode: RunLoop.Mode) {
    let here = Place(runLoop: .current, mode: mode, loop: CFRunLoopGetCurrent())
    // With the lock held, so that nobody removes the place between: a run loop calls nothing of ours from there.
    places.withLock { places in
      guard let i = places.firstIndex(where: { $0.isIn(here.runLoop, here.mode) && $0.loop == nil }) else {
        return
      }
      places[i].loop = here.loop
      // A signal that came before is still set, and is performed now.
      if let loop = here.loop { attach(to: loop, mode) }
    }
  }

  private func attach(to loop: CFRunLoop, _ mode: RunLoop.Mode) {
    guard let source else { return }
    CFRunLoopAddSource(loop, source, Self.name(of: mode))
    CFRunLoopWakeUp(loop)
  }

  private static func loop(of runLoop: RunLoop) -> CFRunLoop? {
    if runLoop === RunLoop.main { return CFRunLoopGetMain() }
    return runLoop === RunLoop.current ? CFRunLoopGetCurrent() : nil
  }

  /// The mode's name; the common modes are known by their constant, not by its text.
  private static func name(of mode: RunLoop.Mode) -> CFString? {
    if mode == .common { return kCFRunLoopCommonModes }
    return unsafe mode.rawValue.withCString {
      unsafe CFStringCreateWithCString(nil, $0, CFStringBuiltInEncodings.UTF8.rawValue)
    }
  }
}
