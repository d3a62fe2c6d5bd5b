import BluehaulTool
import BulkTransfer
import CoreBluetooth
import Foundation
import Locking
import Radio
import VirtualRadio

/// A connection in a world, with everything that it has told.
final class Journey: Sendable {
  let connection: DeviceConnection
  private let told: Told

  private final class Told: Sendable {
    let lines = PosixMutex([String]())
    let stream = AsyncStream.makeStream(of: (line: String, at: Duration).self)
  }

  init(
    _ target: DeviceTarget, in world: World, services: [ServiceRequirement] = [Gadget.requirement],
    memory: KnownDevices? = nil, change: (inout ConnectionConfiguration) -> Void = { _ in }
  ) {
    var configuration = ConnectionConfiguration()
    change(&configuration)
    let told = Told()
    let clock = world.engineClock
    self.told = told
    connection = DeviceConnection(
      to: target, services: services, configuration: configuration, memory: memory,
      managerOptions: world.managerOptions(world.sender), clock: world.engineClock
    ) { event in
      let line: String? =
        switch event {
        case .value(let characteristic, let error):
          error.map { "read failed: \($0)" } ?? "value \(characteristic.value?.count ?? 0)"
        case .written(_, let error): error.map { "write failed: \($0)" } ?? "written"
        case .notifying(let characteristic, let error):
          error.map { "notify failed: \($0)" } ?? "notifying \(characteristic.isNotifying)"
        case .channel(let channel, let error):
          error.map { "no channel: \($0)" } ?? "channel \(channel?.psm ?? 0)"
        case .modifiedServices: "modified"
        case .notRemembered(let error): "not remembered: \(error)"
        default: nil
        }
      guard let line else { return }
      told.lines.withLock { $0.append(line) }
      told.stream.continuation.yield((line, clock.now))
    }
  }

  /// The next thing that the peripheral tells.
  func nextEvent() async -> (line: String, at: Duration)? {
    for await event in told.stream.stream { return event }
    return nil
  }

  /// What the peripheral has told since the last call.
  func takeEvents() -> [String] {
    told.lines.withLock { told in
      defer { told = [] }
      return told
    }
  }

  /// The states from this very moment on, up to one that `isLast`.
  func states(
    until isLast: @escaping @Sendable (DeviceConnection.State) -> Bool
  ) -> Task<[DeviceConnection.State], Never> {
    let stream = connection.states()
    return Task {
      var states: [DeviceConnection.State] = []
      for await state in stream {
        states.append(state)
        if isLast(state) { break }
      }
      return states
    }
  }

  /// The states up to one, after `first` has held for one before it.
  func states(
    after first: @escaping @Sendable (DeviceConnection.State) -> Bool,
    until isLast: @escaping @Sendable (DeviceConnection.State) -> Bool
  ) -> Task<[DeviceConnection.State], Never> {
    let wasThere = PosixMutex(false)
    return states { state in
      wasThere.withLock { wasThere in
        if wasThere, isLast(state) { return true }
        if first(state) { wasThere = true }
        return false
      }
    }
  }

  /// The states until the connection is ready after it was not.
  func readyAgain() -> Task<[DeviceConnection.State], Never> {
    states(after: { !$0.isUsable }, until: { $0.isUsable })
  }

  /// Writes to the command characteristic, and waits for nothing.
  func command(_ bytes: Data = Data([1])) async throws {
    try await connection.withPeripheral { peripheral in
      guard let command = peripheral.characteristic(Gadget.command) else { return }
      peripheral.writeValue(bytes, for: command, type: .withResponse)
    }
  }
}

extension Gadget {
  static var requirement: ServiceRequirement {
    ServiceRequirement(service, name: "the gadget's service", characteristics: [command, event])
  }
}

extension CBPeripheral {
  func characteristic(_ uuid: CBUUID) -> CBCharacteristic? {
    services?.lazy.compactMap { $0.characteristics?.first { $0.uuid == uuid } }.first
  }
}
