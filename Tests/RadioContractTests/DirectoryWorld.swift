import Dispatch
import Locking
import Foundation
import Radio
import TestSupport
import Testing
import VirtualRadio

/// Radios of one directory, each as if it were in a process of its own, as a world.
final class DirectoryWorld: RadioWorld {
  private let folder = TemporaryFolder()
  private let clock: VirtualClock
  private let link: LinkParameters
  private let radios = PosixMutex<[ObjectIdentifier: VirtualRadio]>([:])
  private let progress = DispatchSemaphore(value: 0)

  init(_ mode: VirtualClock.Mode, _ needs: LinkNeeds) {
    clock = VirtualClock(mode)
    link = VirtualWorld.link(needs)
  }

  func makeRadio(_ name: String) -> any Radio {
    do {
      let radio = try VirtualRadio(directory: folder.path("air"), name: name, clock: clock, link: link)
      radios.withLock { $0[ObjectIdentifier(radio)] = radio }
      return radio
    } catch {
      Issue.record("no radio in a directory: \(error)")
      return VirtualAir(clock: clock).makeRadio(name: name)
    }
  }

  func wait(within limit: Duration, until condition: () -> Bool) -> Bool {
    progress.wait(within: limit, until: condition)
  }

  func noteProgress() { progress.signal() }

  func setPower(_ isOn: Bool, of radio: any Radio) {
    radios.withLock { $0[ObjectIdentifier(radio)] }?.setPower(isOn ? .poweredOn : .poweredOff)
  }

  func takeAway(_ radio: any Radio) { radios.withLock { $0[ObjectIdentifier(radio)] }?.setInReach(false) }
}
