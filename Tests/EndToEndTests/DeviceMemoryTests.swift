import BulkTransfer
import CoreBluetooth
import Foundation
import Radio
import TestSupport
import Testing
import VirtualRadio

@Suite("What a program remembers of devices", .timeLimit(.minutes(30)))
struct DeviceMemoryTests {
  @Test("a device is remembered when it was ready, and forgotten on request")
  func memory() async throws {
    let world = try World()
    let gadget = await Gadget.start("gadget", on: world.device)
    let folder = TemporaryFolder()
    let memory = KnownDevices(directory: folder.path("state"))
    let journey = Journey(.name("gadget"), in: world, memory: memory)
    let id = try await journey.connection.connect()
    let devices = try memory.devices()
    #expect(devices.map(\.identifier) == [id] && devices.first?.name == "gadget")
    #expect(devices.first?.services == [Gadget.service.uuidString])
    #expect(devices.first?.ownName == World.deviceName)
    let taken = Journey(.identifier(id), in: world, memory: memory)
    let error = await #expect(throws: TransferError.self) { try await taken.connection.connect() }
    #expect(error?.code == .locked)
    await journey.connection.forget()
    #expect(try memory.devices().isEmpty)
    gadget.stop()
  }

  @Test("a memory that is damaged is told of, and keeps nobody from connecting")
  func damagedMemory() async throws {
    let world = try World()
    let gadget = await Gadget.start("gadget", on: world.device)
    let folder = TemporaryFolder()
    let memory = KnownDevices(directory: folder.path("state"))
    try FileManager.default.createDirectory(atPath: memory.directory, withIntermediateDirectories: true)
    try Data("{".utf8).write(to: URL(filePath: memory.path))
    let journey = Journey(.name("gadget"), in: world, memory: memory)
    let id = try await journey.connection.connect()
    #expect(journey.takeEvents().contains { $0.hasPrefix("not remembered") })
    #expect(try memory.devices().map(\.identifier) == [id])
    gadget.stop()
  }

  /// A run of the program before this one, which has connected and ended without a word.
  // Sendable: everything is touched on its queue only.
  private final class FormerRun: NSObject, CBCentralManagerDelegate, @unchecked Sendable {
    private let connected = AsyncStream.makeStream(of: UUID.self)
    private let queue = DispatchQueue(label: "former")
    private var manager: CBCentralManager?
    private var peripheral: CBPeripheral?

    func connect(_ options: [String: any Sendable]) async -> UUID? {
      queue.sync { manager = CBCentralManager(delegate: self, queue: queue, options: options) }
      for await id in connected.stream { return id }
      return nil
    }

    func end() {
      queue.sync {
        manager = nil
        peripheral = nil
      }
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
      if central.state == .poweredOn { central.scanForPeripherals(withServices: [Gadget.service]) }
    }

    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {}

    func centralManager(
      _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
      rssi RSSI: NSNumber
    ) {
      self.peripheral = peripheral
      central.connect(peripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
      connected.continuation.yield(peripheral.identifier)
    }
  }

  @Test("what a former run of the program was connected to is taken over without a search")
  func restored() async throws {
    let world = try World()
    let gadget = await Gadget.start(World.deviceName, on: world.device)
    let folder = TemporaryFolder()
    let options: [String: any Sendable] = [
      CBManagerOptionRadioKey: world.sender, CBManagerOptionStateDirectoryKey: folder.path("state"),
      CBCentralManagerOptionRestoreIdentifierKey: "former",
    ]
    let former = FormerRun()
    let id = try #require(await former.connect(options))
    former.end()
    // The former run's scan was on as well; it is not this one's.
    let connection = DeviceConnection(
      to: .name(World.deviceName), services: [Gadget.requirement], managerOptions: options,
      clock: world.engineClock)
    let states = connection.states()
    #expect(try await connection.connect() == id)
    var seen: [DeviceConnection.State] = []
    for await state in states {
      seen.append(state)
      if state == .ready(id) { break }
    }
    #expect(seen.contains(.connecting(id)) && !seen.contains(.finding))
    #expect(!world.sender.seen.isScanning)
    gadget.stop()
  }
}
