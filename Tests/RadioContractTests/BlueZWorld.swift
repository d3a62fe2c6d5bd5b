import BlueZRadio
import DBus
import Dispatch
import Foundation
import Locking
import Radio
import Testing

/// Adapters of one bluetoothd, in a machine that has nothing else to do with them: radios are on hci0, hci1 and so on, in the order in which they are made.
///
/// A scenario begins with adapters that are on and know no device.
final class BlueZWorld: RadioWorld {
  private struct State {
    var next = 0
    var adapters: [ObjectIdentifier: ObjectPath] = [:]
  }

  private let state = PosixMutex(State())
  private let progress = DispatchSemaphore(value: 0)
  private let bus: Bus

  init() {
    bus = Bus()
    do {
      do { try prepare() } catch {
        // bluetoothd 5.66 ends now and then when links of its own adapters end while it discovers over them; and controllers in software keep a link
        // for ever whose other end has lost its power.
        try Self.renewStack()
        try prepare()
      }
    } catch { Issue.record("the adapters cannot be prepared: \(error)") }
  }

  /// Whether the tests run in the virtual machine.
  static let isHere = ProcessInfo.processInfo.environment["BLUEHAUL_REAL_STACK"] == "1"

  private static let adapter = "org.bluez.Adapter1"

  private struct StillInUse: Error { let path: ObjectPath }

  /// New controllers, and a daemon that knows nothing of the old ones.
  private static func renewStack() throws {
    // As the kernel has them, since the daemon may be gone. Links have names like `hci0:64`.
    let count = try FileManager.default.contentsOfDirectory(atPath: "/sys/class/bluetooth")
      .count { !$0.contains(":") }
    for words in [
      ["air", "stop"], ["daemon", "restart"], ["air", "start"], ["wait-powered", "\(count)", "60"],
    ] {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = ["stack"] + words
      try process.run()
      process.waitUntilExit()
    }
  }

  private func prepare() throws {
    // What the scenario before has left is gone once nothing is advertised any more.
    let adapters = try bus.objects().filter { $0.value[Self.adapter] != nil }.keys.sorted()
    for path in adapters { try bus.set("Powered", .boolean(true), at: path) }
    var rounds = 0
    while let path = try bus.objects().first(where: { Self.isBusy($0.value) })?.key {
      rounds += 1
      if rounds == 20 {
        // Whoever wanted that link has gone.
        _ = try? bus.call(path, "org.bluez.Device1", "Disconnect", [])
      }
      guard rounds < 100 else { throw StillInUse(path: path) }
      _ = progress.wait(timeout: .now() + .milliseconds(100))
    }
    for (path, interfaces) in try bus.objects() {
      guard let device = interfaces["org.bluez.Device1"], case .objectPath(let adapter)? = device["Adapter"]
      else {
        continue
      }
      _ = try? bus.call(adapter, Self.adapter, "RemoveDevice", [.objectPath(path)])
    }
    try Self.forgetNames()
  }

  /// bluetoothd keeps the name of every device that it has heard, also of those that were removed, and has it again for a device of that address
  /// before that says it: then the device has nothing new to say. Read when a device is heard for the first time, so it may go while the daemon runs.
  private static func forgetNames() throws {
    let files = FileManager.default
    let storage = URL(filePath: "/var/lib/bluetooth")
    for adapter in try files.contentsOfDirectory(at: storage, includingPropertiesForKeys: nil) {
      let cache = adapter.appending(path: "cache")
      guard files.fileExists(atPath: cache.path) else { continue }
      for file in try files.contentsOfDirectory(at: cache, includingPropertiesForKeys: nil) {
        try files.removeItem(at: file)
      }
    }
  }

  private static func isBusy(_ object: [String: [String: DBusValue]]) -> Bool {
    if case .byte(let count)? = object["org.bluez.LEAdvertisingManager1"]?["ActiveInstances"], count > 0 {
      return true
    }
    if case .array(_, let services)? = object[adapter]?["UUIDs"],
      services.contains(where: { if case .string(let text) = $0 { text.hasPrefix("0000ff") } else { false } })
    {
      return true
    }
    return object["org.bluez.Device1"]?["Connected"] == .boolean(true)
  }

  func makeRadio(_ name: String) -> any Radio {
    let number = state.withLock { state in
      defer { state.next += 1 }
      return state.next
    }
    do {
      let radio = RepeatingRadio(try BlueZRadio(adapter: "hci\(number)"))
      let path = try ObjectPath("/org/bluez/hci\(number)")
      state.withLock { $0.adapters[ObjectIdentifier(radio)] = path }
      return radio
    } catch {
      Issue.record("no radio on hci\(number): \(error)")
      preconditionFailure("a scenario needs its radios")
    }
  }

  func wait(within limit: Duration, until condition: () -> Bool) -> Bool {
    // Getters change without an event that a scenario would note, so it is looked at anyway from time to time.
    let deadline = ContinuousClock.now + limit
    while !condition() {
      let rest = min(deadline - ContinuousClock.now, .milliseconds(50))
      guard rest > .zero else { return condition() }
      _ = progress.wait(timeout: .now() + rest / .seconds(1))
    }
    return true
  }

  func noteProgress() { progress.signal() }

  func setPower(_ isOn: Bool, of radio: any Radio) {
    guard let path = state.withLock({ $0.adapters[ObjectIdentifier(radio)] }) else { return }
    do { try bus.set("Powered", .boolean(isOn), at: path) } catch {
      Issue.record("\(path) cannot be switched: \(error)")
    }
  }

  /// The air of the machine knows no distance: a device that is switched off is the nearest to one that is gone.
  func takeAway(_ radio: any Radio) { setPower(false, of: radio) }
}

/// The system bus, for scripts that wait.
private final class Bus: Sendable {
  private let connection = PosixMutex<DBusConnection?>(nil)

  private func waiting<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value
  {
    let done = DispatchSemaphore(value: 0)
    let result = PosixMutex<Result<Value, any Error>?>(nil)
    Task {
      let outcome: Result<Value, any Error>
      do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
      result.withLock { $0 = outcome }
      done.signal()
    }
    done.wait()
    return try #require(result.withLock { $0 }).get()
  }

  private func open() throws -> DBusConnection {
    if let bus = connection.withLock({ $0 }) { return bus }
    let bus = try waiting { try await DBusConnection.open(.system) }
    connection.withLock { $0 = bus }
    return bus
  }

  func objects() throws -> [ObjectPath: DBusProperties] {
    let bus = try open()
    return try waiting { try await bus.managedObjects(at: "/", destination: "org.bluez") }
  }

  func call(_ path: ObjectPath, _ interface: String, _ member: String, _ body: [DBusValue]) throws
    -> DBusMessage
  {
    let bus = try open()
    return try waiting {
      try await bus.call(
        .call(destination: "org.bluez", path: path, interface: interface, member: member, body: body),
        timeLimit: .seconds(10))
    }
  }

  func set(_ name: String, _ value: DBusValue, at path: ObjectPath) throws {
    let bus = try open()
    try waiting {
      try await bus.setProperty(name, of: "org.bluez.Adapter1", at: path, destination: "org.bluez", to: value)
    }
  }
}
