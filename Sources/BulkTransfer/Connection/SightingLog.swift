internal import Foundation

/// What one scan has told of devices: decides about each sighting.
///
/// A device is told when it is seen first, and once more each time that more has become known of it: a name, the name that it
/// advertises itself, services. It remembers ``capacity`` devices; beyond, it forgets them all and tells them anew, so that addresses
/// that change for ever do not fill the memory.
struct SightingLog: Sendable {
  /// How many devices are remembered.
  static let capacity = 4096
  /// How many services of a device are told; more than fit into advertisements that are meant to be read.
  static let mostServices = 64

  private var told: [UUID: DeviceSighting] = [:]
  /// What was known of the device before the last sighting that was to be told.
  private var before: (identifier: UUID, sighting: DeviceSighting?)?

  /// How many devices are remembered now.
  var count: Int { told.count }

  /// Takes note of a sighting; returns what is to be told of the device: all that is known, with the newest signal strength. nil: nothing.
  mutating func take(_ sighting: DeviceSighting) -> DeviceSighting? {
    guard var known = told[sighting.identifier] else {
      if told.count >= Self.capacity { told = [:] }
      var first = sighting
      first.services = Array(first.services.prefix(Self.mostServices))
      told[sighting.identifier] = first
      before = (sighting.identifier, nil)
      return first
    }
    let former = known
    var saysMore = false
    if known.advertisedName == nil, let name = sighting.advertisedName {
      // What the host called it before may be the same.
      saysMore = name != known.knownName
      known.advertisedName = name
    }
    if known.knownName == nil, let name = sighting.knownName {
      saysMore = saysMore || known.advertisedName == nil
      known.knownName = name
    }
    for service in sighting.services where !known.services.contains(service) {
      guard known.services.count < Self.mostServices else { break }
      known.services.append(service)
      saysMore = true
    }
    known.rssi = sighting.rssi ?? known.rssi
    known.isUpdate = true
    told[sighting.identifier] = known
    guard saysMore else { return nil }
    before = (sighting.identifier, former)
    return known
  }

  /// Takes back what ``take(_:)`` has returned last: it could not be told.
  mutating func takeBack() {
    guard let before else { return }
    told[before.identifier] = before.sighting
    self.before = nil
  }
}
