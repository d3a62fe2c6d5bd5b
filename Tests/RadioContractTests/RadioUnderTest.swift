import Dispatch
import Locking
import Foundation
import Radio
import Testing
import VirtualRadio

/// The radios that the contract is checked on. A new radio is a new case, and a ``RadioWorld`` for it.
enum RadioUnderTest: String, CaseIterable, CustomTestStringConvertible {
  /// Adapters of one process in simulated time.
  case virtualLockStep
  /// The same in real time.
  case virtualRealTime
  /// The same on an air that does not wait for the clock.
  case virtualUnpaced
  /// Adapters that meet in a directory, in real time.
  case directoryRealTime
  /// The same on an air that does not wait for the clock.
  case directoryUnpaced
  /// Adapters of bluetoothd in a virtual machine, which is all that there is to test then: one scenario at a time (`--no-parallel`).
  case bluez

  static var allCases: [RadioUnderTest] {
    BlueZWorld.isHere
      ? [.bluez]
      : [.virtualLockStep, .virtualRealTime, .virtualUnpaced, .directoryRealTime, .directoryUnpaced]
  }

  var testDescription: String { rawValue }

  /// How long an order without an answer may take to become true.
  var delay: Duration { self == .bluez ? .milliseconds(700) : .zero }

  /// How long a sighting may take: on bluetoothd each device advertises anew every second.
  var patience: Duration { self == .bluez ? .seconds(20) : Phone.patience }

  /// Whether services of the overflow area are another kind of thing than those of the advertisement.
  var hasOverflowArea: Bool { self != .bluez }

  /// As a server bluetoothd 5.66 refuses longer values in one request.
  var longestRequest: Int { self == .bluez ? 510 : 512 }

  /// bluetoothd has what devices solicit among its experimental properties only.
  var hearsSolicitations: Bool { self != .bluez }

  /// A world in which radios hear each other.
  func makeWorld(_ needs: LinkNeeds = LinkNeeds()) -> any RadioWorld {
    switch self {
    case .virtualLockStep: VirtualWorld(.lockStep, needs)
    case .virtualRealTime: VirtualWorld(.realTime, needs)
    case .virtualUnpaced: VirtualWorld(.unpaced, needs)
    case .directoryRealTime: DirectoryWorld(.realTime, needs)
    case .directoryUnpaced: DirectoryWorld(.unpaced, needs)
    case .bluez: BlueZWorld()
    }
  }
}

/// What a scenario wants of its links; a radio that cannot do as told does as it can, and scenarios ask for what they got.
struct LinkNeeds {
  var attMTU = 185
  var mtuExchangeDelay: Duration?
  /// A small queue makes back-pressure come soon.
  var queueDepth: Int? = 8
}

/// Radios that hear each other, and the time in which they live.
protocol RadioWorld: Sendable {
  func makeRadio(_ name: String) -> any Radio

  /// Lets time pass until `condition` holds; false if it does not within `limit`.
  func wait(within limit: Duration, until condition: () -> Bool) -> Bool

  /// To be called when something has happened that a waiting condition may depend on.
  func noteProgress()

  /// Switches an adapter.
  func setPower(_ isOn: Bool, of radio: any Radio)

  /// Takes a device away without a word.
  func takeAway(_ radio: any Radio)
}

/// A ``VirtualAir`` as a world.
final class VirtualWorld: RadioWorld {
  let clock: VirtualClock
  let air: VirtualAir
  private let radios = PosixMutex<[String: VirtualRadio]>([:])
  private let progress = DispatchSemaphore(value: 0)

  init(_ mode: VirtualClock.Mode, _ needs: LinkNeeds) {
    clock = VirtualClock(mode)
    air = VirtualAir(clock: clock, link: Self.link(needs))
  }

  /// A quick link that does as told.
  static func link(_ needs: LinkNeeds) -> LinkParameters {
    LinkParameters(
      attMTU: needs.attMTU, connectionInterval: .microseconds(7500), supervisionTimeout: .milliseconds(250),
      queueDepth: needs.queueDepth, mtuExchangeDelay: needs.mtuExchangeDelay)
  }

  func makeRadio(_ name: String) -> any Radio {
    let radio = air.makeRadio(name: name)
    radios.withLock { $0[name] = radio }
    return radio
  }

  func wait(within limit: Duration, until condition: () -> Bool) -> Bool {
    if clock.mode == .lockStep {
      do {
        // What only a getter tells, and no event, does not end the run: look again.
        return try clock.run(until: condition, within: limit) || condition()
      } catch {
        Issue.record("simulated time cannot go on: \(error)")
        return false
      }
    }
    return progress.wait(within: limit, until: condition)
  }

  func noteProgress() { if clock.mode != .lockStep { progress.signal() } }

  func setPower(_ isOn: Bool, of radio: any Radio) {
    guard let radio = radios.withLock({ $0[radio.name] }) else { return }
    air.setPower(isOn ? .poweredOn : .poweredOff, of: radio)
  }

  func takeAway(_ radio: any Radio) {
    guard let radio = radios.withLock({ $0[radio.name] }) else { return }
    air.setInReach(false, of: radio)
  }
}

extension DispatchSemaphore {
  /// Waits in real time until `condition` holds, asking again at each signal; false if it does not within `limit`.
  func wait(within limit: Duration, until condition: () -> Bool) -> Bool {
    let (seconds, attoseconds) = limit.components
    let deadline =
      DispatchTime.now() + .seconds(Int(seconds)) + .nanoseconds(Int(attoseconds / 1_000_000_000))
    while !condition() {
      if wait(timeout: deadline) == .timedOut { return condition() }
    }
    return true
  }
}
