internal import DBus
internal import Foundation

extension SystemFacts {
  /// Where the facts lie; a test gives folders of its own.
  struct Places: Sendable {
    var sys = "/sys"
    var daemons = ["/usr/libexec/bluetooth/bluetoothd", "/usr/lib/bluetooth/bluetoothd"]
    var bus = DBusAddress.system
  }

  /// Looks at everything; takes some seconds at most.
  static func gather(_ places: Places = Places()) async -> SystemFacts {
    var facts = SystemFacts()
    facts.look(in: places.sys)
    for path in places.daemons where facts.daemonVersion == nil {
      facts.daemonVersion = await ProgramOutput.firstLine(of: path, ["--version"]).flatMap {
        DaemonVersion($0)
      }
    }
    await facts.ask(places.bus)
    return facts
  }

  // MARK: Kernel

  /// sysfs(5): `class/bluetooth`, `class/rfkill`, `module/bluetooth`; debugfs where root may read it.
  private mutating func look(in sys: String) {
    kernel = Self.text("/proc/sys/kernel/osrelease") ?? ""
    kernelAdapters = Self.names(in: "\(sys)/class/bluetooth").filter {
      $0.hasPrefix("hci") && !$0.contains(":")
    }
    hasSubsystem =
      FileManager.default.fileExists(atPath: "\(sys)/module/bluetooth")
      || FileManager.default.fileExists(atPath: "\(sys)/class/bluetooth")
    hasEnhancedCredits = Self.text("\(sys)/module/bluetooth/parameters/enable_ecred").map { $0 == "Y" }
    blocks = Self.names(in: "\(sys)/class/rfkill").compactMap { name in
      let folder = "\(sys)/class/rfkill/\(name)"
      guard Self.text("\(folder)/type") == "bluetooth" else { return nil }
      return Block(isSoft: Self.text("\(folder)/soft") == "1", isHard: Self.text("\(folder)/hard") == "1")
    }
    for adapter in kernelAdapters {
      let folder = "\(sys)/kernel/debug/bluetooth/\(adapter)"
      guard let least = Self.text("\(folder)/conn_min_interval").flatMap({ Int($0) }),
        let most = Self.text("\(folder)/conn_max_interval").flatMap({ Int($0) }), least <= most
      else { continue }
      intervals[adapter] = least...most
    }
  }

  private static func names(in folder: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
  }

  private static func text(_ path: String) -> String? {
    FileManager.default.contents(atPath: path).map {
      String(decoding: $0.prefix(256), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
  }

  // MARK: Daemon

  private static let patience = Duration.seconds(10)

  private mutating func ask(_ address: DBusAddress) async {
    let bus: DBusConnection
    do {
      bus = try await DBusConnection.open(address, timeLimit: Self.patience)
    } catch {
      daemon = .noBus(Self.words(error))
      return
    }
    do {
      let objects = try await bus.managedObjects(
        at: "/", destination: BlueZ.service, timeLimit: Self.patience)
      var store = ObjectStore()
      store.load(objects)
      adapters = store.paths(with: BlueZ.adapter).map { Self.adapter($0, store) }
      daemon = .answers
    } catch let error as DBusError {
      switch error.name {
      case DBusErrorName.accessDenied: daemon = .notPermitted(Self.words(error))
      case DBusErrorName.serviceUnknown, DBusErrorName.nameHasNoOwner:
        daemon = .notRunning(Self.words(error))
      // The bus could not start it, as systemd, or the bus itself, tells under names of its own.
      case let name where name.contains("Spawn") || name.contains("systemd1"):
        daemon = .notRunning(Self.words(error))
      default: daemon = .unusable(Self.words(error))
      }
    } catch {
      daemon = .unusable(Self.words(error))
    }
    await bus.close()
  }

  private static func adapter(_ path: ObjectPath, _ store: ObjectStore) -> Adapter {
    Adapter(
      name: path.text.split(separator: "/").last.map(String.init) ?? path.text,
      address: store.property("Address", BlueZ.adapter, of: path) ?? "no address",
      isPowered: store.property("Powered", BlueZ.adapter, of: path) ?? false,
      roles: store.property("Roles", BlueZ.adapter, of: path),
      advertisementsLeft: store.property(
        "SupportedInstances", BlueZ.advertisingManager, of: path, as: UInt8.self
      )
      .map { Int($0) })
  }

  private static func words(_ error: any Error) -> String {
    (error as? DBusError).map { $0.message.isEmpty ? $0.name : $0.message } ?? String(describing: error)
  }
}
