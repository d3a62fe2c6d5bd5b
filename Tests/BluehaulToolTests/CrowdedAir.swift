import Foundation
import Radio
import VirtualRadio

/// A radio on which a scan comes across what a test says, each a while after the scan has begun, in simulated time.
final class CrowdedAir: Radio {
  /// What is seen so long after the scan has begun; asked for at that moment.
  struct Moment: Sendable {
    let delay: Duration
    let sightings: @Sendable () -> [Sighting]

    init(_ delay: Duration, _ sightings: @escaping @Sendable () -> [Sighting]) {
      self.delay = delay
      self.sightings = sightings
    }
  }

  typealias Course = [Moment]

  let name = "crowded"
  private let base: VirtualRadio
  private let lockStep = VirtualClock(.lockStep)
  private let course: @Sendable () -> Course

  init(_ course: @escaping @Sendable () -> Course) throws {
    self.course = course
    base = VirtualAir(clock: lockStep).makeRadio(name: "crowded")
    try lockStep.start { _ in }
  }

  deinit { lockStep.stop() }

  var clock: any RadioClock { lockStep }

  func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio {
    Central(base.makeCentral(sink: sink)) { [lockStep, course] in
      for moment in course() {
        _ = lockStep.schedule(after: moment.delay) {
          for sighting in moment.sightings() { sink(.discovered(sighting)) }
        }
      }
    }
  }

  func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio {
    base.makePeripheral(sink: sink)
  }

  // Sendable: as the class that it inherits from.
  private final class Central: PassingCentral, @unchecked Sendable {
    private let onScan: @Sendable () -> Void

    init(_ base: any CentralRadio, onScan: @escaping @Sendable () -> Void) {
      self.onScan = onScan
      super.init(base)
    }

    override func startScan(_ filter: ScanFilter) { onScan() }
    override func stopScan() {}
  }
}
