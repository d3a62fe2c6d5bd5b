public import Foundation
internal import SystemCalls

/// The devices that this user's programs have been connected to, in one file of the state folder.
///
/// It helps to find a device again and decides nothing: what a device advertises counts before it. At most ``most`` devices are kept, those
/// that were connected to last. The file is replaced as a whole; one that is damaged or of another version is set aside and begun anew.
public struct KnownDevices: Sendable {
  /// What is known of one device.
  public struct Device: Hashable, Sendable {
    /// By which this host knows it.
    public var identifier: UUID
    /// The name by which it was found, or its own.
    public var name: String?
    /// The name that it gave itself over the link, where that is another one than it advertises.
    public var ownName: String?
    /// When a connection to it was last ready.
    public var lastConnected: Date
    /// The services that were required of it.
    public var services: [String]

    public init(
      identifier: UUID, name: String? = nil, ownName: String? = nil, lastConnected: Date,
      services: [String] = []
    ) {
      self.identifier = identifier
      self.name = name
      self.ownName = ownName
      self.lastConnected = lastConnected
      self.services = services
    }
  }

  /// The most devices that are remembered.
  public static let most = 64
  /// The name of the file.
  public static let fileName = "devices.json"
  /// A longer file is refused unread, in bytes.
  private static let longestFile = 1 << 20

  /// The folder.
  public let directory: String
  private let operations: any FileOperations

  /// Devices in a file of `directory`, which is made when the first device is remembered.
  public init(directory: String) {
    self.init(directory: directory, operations: SystemFileOperations())
  }

  init(directory: String, operations: any FileOperations) {
    self.directory = directory
    self.operations = operations
  }

  /// The file.
  public var path: String { "\(directory)/\(Self.fileName)" }

  /// All of them, the last connected first.
  ///
  /// - Throws: `damagedState` where the file is torn, foreign or of another version; `storage` where it cannot be read.
  public func devices() throws(TransferError) -> [Device] {
    do throws(TransferError) {
      guard let text = try file.read(limit: Self.longestFile) else { return [] }
      return try JSONReader.read(DeviceList.self, from: text, document: path.printable).devices
    } catch {
      guard error.code == .damagedState else { throw error }
      throw TransferError(
        .damagedState, error.message, advice: error.advice ?? "it is begun anew at the next connection")
    }
  }

  /// The device that was last connected to as this target; nil where none was.
  public func device(for target: DeviceTarget) throws(TransferError) -> Device? {
    try devices().first { device in
      switch target {
      case .name(let name): device.name == name
      case .identifier, .oneOf: target.candidates.contains(device.identifier)
      case .any: true
      }
    }
  }

  /// Adds a device, or replaces what was known of it.
  ///
  /// - Returns: what was wrong with the file that was found, if it had to be begun anew.
  /// - Throws: `locked` while another process changes the file; `storage`, `diskFull`.
  @discardableResult
  public func remember(_ device: Device) throws(TransferError) -> TransferError? {
    try change { devices in
      devices.removeAll { $0.identifier == device.identifier }
      devices.append(device)
    }
  }

  /// Removes the devices that are meant.
  ///
  /// - Returns: those that were removed.
  /// - Throws: `damagedState` where the file cannot be understood; `locked` while another process changes it.
  public func forget(where isMeant: (Device) -> Bool) throws(TransferError) -> [Device] {
    let gone = try devices().filter(isMeant)
    guard !gone.isEmpty else { return [] }
    try change { devices in
      devices.removeAll { device in gone.contains { $0.identifier == device.identifier } }
    }
    return gone
  }

  /// Claims a device for this process, so that no other one connects to it meanwhile, until the claim goes.
  ///
  /// - Parameter name: what the error calls the device.
  /// - Throws: `locked`, naming the process, where another one has it.
  public func claim(_ identifier: UUID, name: String? = nil) throws(TransferError) -> DeviceClaim {
    try operations.makeDirectories(directory)
    let what = name.map { "\($0.printable) (\(identifier.uuidString))" } ?? identifier.uuidString
    return DeviceClaim(
      try FileLock(
        path: "\(directory)/device-\(identifier.uuidString).lock", purpose: "the device \(what)",
        operations: operations))
  }

  private var file: AtomicFile { AtomicFile(path: path, permissions: 0o600, operations: operations) }

  @discardableResult
  private func change(_ body: (inout [Device]) -> Void) throws(TransferError) -> TransferError? {
    try operations.makeDirectories(directory)
    let lock = try FileLock(
      path: "\(directory)/devices.lock", purpose: "the list of known devices", operations: operations)
    defer { lock.release() }
    try file.removeLeftovers()
    var damage: TransferError?
    var list: [Device]
    do throws(TransferError) {
      list = try devices()
    } catch {
      guard error.code == .damagedState else { throw error }
      try setAside()
      damage = TransferError(
        .damagedState, error.message,
        advice: "the list of known devices was begun anew; the old file is \(path.printable).old")
      list = []
    }
    body(&list)
    list.sort { $0.lastConnected > $1.lastConnected }
    try file.write(DeviceList(devices: Array(list.prefix(Self.most))).encoded())
    return damage
  }

  private func setAside() throws(TransferError) {
    do throws(SystemError) {
      let folder = try OpenFile(directory, flags: O_RDONLY | O_DIRECTORY, operations)
      try operations.rename(Self.fileName, to: "\(Self.fileName).old", in: folder.descriptor)
    } catch {
      throw .failure(error, to: "set aside", path)
    }
  }
}

/// The right to connect to one device; ends with the last reference.
public final class DeviceClaim: Sendable {
  private let lock: FileLock

  init(_ lock: FileLock) { self.lock = lock }

  deinit { lock.removeAndRelease() }
}

/// The contents of the file, as `docs/manifest.md` describes them.
private struct DeviceList: JSONReadable {
  static let formatName = "bluehaul-devices"
  static let version = 1
  private static let longestName = 248
  private static let mostServices = 16

  var devices: [KnownDevices.Device]

  init(devices: [KnownDevices.Device]) { self.devices = devices }

  init(reading reader: JSONReader) throws {
    try reader.checkHeader(format: Self.formatName, version: Self.version)
    devices = try reader.objects("devices", most: KnownDevices.most) { reader in
      guard let identifier = UUID(uuidString: try reader.text("identifier")) else {
        throw reader.fault("identifier", "is no UUID")
      }
      return KnownDevices.Device(
        identifier: identifier, name: try reader.optionalText("name"),
        ownName: try reader.optionalText("ownName"),
        lastConnected: try reader.time("lastConnected"),
        services: try reader.texts("services", most: Self.mostServices))
    }
    devices.sort { $0.lastConnected > $1.lastConnected }
  }

  func encoded() -> Data {
    JSONText.encode(
      .object([
        ("format", .text(Self.formatName)), ("version", .number(Self.version)),
        (
          "devices",
          .array(
            devices.map { device in
              .object([
                ("identifier", .text(device.identifier.uuidString)),
                ("name", device.name.map { .text($0.cut(to: Self.longestName)) }),
                ("ownName", device.ownName.map { .text($0.cut(to: Self.longestName)) }),
                ("lastConnected", .time(device.lastConnected)),
                ("services", .array(device.services.prefix(Self.mostServices).map { .text($0) })),
              ])
            })
        ),
      ]))
  }
}
