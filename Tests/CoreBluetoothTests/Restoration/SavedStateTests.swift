import Foundation
import Locking
import Radio
import Testing

@testable import CoreBluetooth

/// Files of saved state: names, contents, and what a recorder makes of bad ones.
@Suite(.timeLimit(.minutes(30))) struct SavedStateTests {
  // MARK: Names

  @Test(arguments: [
    ("logger", "logger"), ("a b", "a%20b"), ("../x", "%2E%2E%2Fx"), ("é", "%C3%A9"), ("A-z_9", "A-z_9"),
    ("%", "%25"), ("\u{0}", "%00"), (".", "%2E"),
  ])
  func anyIdentifierIsAFileName(identifier: String, name: String) {
    #expect(StateLocation.fileName(identifier) == name)
  }

  @Test func longIdentifiersStayApart() {
    let long = String(repeating: "a", count: 5000)
    let names = [long, long + "b", String(repeating: "é", count: 300)].map { StateLocation.fileName($0) }
    #expect(Set(names).count == 3)
    // With role, dot and extension it must fit NAME_MAX.
    for name in names { #expect(name.utf8.count <= 200) }
  }

  @Test(arguments: [
    (["XDG_STATE_HOME": "/s", "HOME": "/h"], "/s/CoreBluetooth/my%20tool"),
    (["XDG_STATE_HOME": "relative", "HOME": "/h"], "/h/.local/state/CoreBluetooth/my%20tool"),
    (["HOME": "/h"], "/h/.local/state/CoreBluetooth/my%20tool"), ([:], nil),
  ])
  func theFolderFollowsTheEnvironment(variables: [String: String], folder: String?) {
    let location = try? StateLocation(
      role: "central", identifier: "x", directory: nil, program: "my tool", variables: variables)
    #expect(location?.folder == folder)
    if folder != nil { #expect(location?.name == "central.x") }
  }

  @Test(arguments: ["/a/b", URL(filePath: "/a/b")] as [any Sendable])
  func theProgramMayChooseTheFolder(directory: any Sendable) throws {
    let location = try StateLocation(
      role: "central", identifier: "x", directory: directory, program: "p", variables: [:])
    #expect(location.folder == "/a/b")
  }

  @Test(arguments: ["", 7] as [any Sendable])
  func whatIsNoFolderIsRefused(directory: any Sendable) {
    #expect(throws: StateLocation.Absence.self) {
      try StateLocation(
        role: "central", identifier: "x", directory: directory, program: "p", variables: ["HOME": "/h"])
    }
  }

  // MARK: Contents

  private static let full = SavedCentral(
    peripherals: [
      SavedCentral.Peripheral(
        identifier: UUID(), name: "bénch", options: ["kCBConnectOptionStartDelay": 2.5],
        services: [
          SavedCentral.Service(
            uuid: SavedUUID(BluetoothUUID(0x180D as UInt16)), handles: [1, 20], isPrimary: true,
            isListed: true, included: [1],
            characteristics: [
              SavedCentral.Characteristic(
                uuid: SavedUUID(BluetoothUUID(UUID())), handle: 3, endHandle: 5, properties: 16,
                isNotifying: true,
                descriptors: [.init(uuid: SavedUUID(BluetoothUUID(0x2902 as UInt16)), handle: 4)])
            ]),
          SavedCentral.Service(
            uuid: SavedUUID(BluetoothUUID(0x1234_5678 as UInt32)), handles: [30, 30], isPrimary: false,
            isListed: false),
        ]), SavedCentral.Peripheral(identifier: UUID(), options: [:]),
    ], scan: ScanRequest(services: nil, options: nil))

  @Test func contentsComeBackAsTheyWere() throws {
    let octets = try SavedState(identifier: "x", contents: Self.full).encoded()
    #expect(try SavedState<SavedCentral>.decode(octets, identifier: "x") == Self.full)
  }

  @Test(arguments: [true, nil], [[CBUUID(string: "180D")], nil])
  func scansKeepExactlyTheirOptions(duplicates: Bool?, solicited: [CBUUID]?) throws {
    var options: [String: Any] = [:]
    options[CBCentralManagerScanOptionAllowDuplicatesKey] = duplicates
    options[CBCentralManagerScanOptionSolicitedServiceUUIDsKey] = solicited
    let request = ScanRequest(services: [CBUUID(string: "180F")], options: options)
    let state = SavedState(
      identifier: "x", contents: SavedCentral(peripherals: [], scan: request))
    let restored = try #require(
      try SavedState<SavedCentral>.decode(state.encoded(), identifier: "x").scan)
    #expect(restored.filter.services == [BluetoothUUID(0x180F as UInt16)])
    #expect(restored.filter.allowDuplicates == (duplicates ?? false))
    #expect(restored.options.count == (duplicates == nil ? 0 : 1) + (solicited == nil ? 0 : 1))
    #expect(restored.options[CBCentralManagerScanOptionAllowDuplicatesKey] as? Bool == duplicates)
    #expect(
      restored.options[CBCentralManagerScanOptionSolicitedServiceUUIDsKey] as? [CBUUID] == solicited)
  }

  @Test func whatIsTooLargeGoesWithoutWhatCanBeDiscoveredAgain() throws {
    var state = Self.full
    let service = SavedCentral.Service(
      uuid: SavedUUID(BluetoothUUID(UUID())), handles: [1, 2], isPrimary: true, isListed: true)
    state.peripherals[0].services = Array(repeating: service, count: 20_000)
    let octets = try SavedState(identifier: "x", contents: state).encoded()
    #expect(octets.count <= SavedStateHeader.limit)
    let restored = try SavedState<SavedCentral>.decode(octets, identifier: "x")
    #expect(restored.peripherals.map(\.identifier) == state.peripherals.map(\.identifier))
    #expect(restored.peripherals[0].services == nil)
    state.peripherals[0].name = String(repeating: "n", count: 1 << 21)
    #expect(throws: SavedStateError.self) { try SavedState(identifier: "x", contents: state).encoded() }
  }

  // MARK: Bad files

  /// A place in memory that fails on request.
  private final class MemoryStore: StateStore {
    struct State: Sendable {
      var octets: Data?
      var fails = false
      var writes = 0
    }

    let path = "(memory)"
    let state: PosixMutex<State>

    init(_ octets: Data? = nil) { state = PosixMutex(State(octets: octets)) }

    func read(limit: Int) throws(StateFileError) -> Data? {
      let state = state.withLock { $0 }
      if state.fails { throw StateFileError(.failed, "no") }
      return state.octets
    }

    func write(_ contents: Data) throws(StateFileError) { try change(contents) }
    func remove() throws(StateFileError) { try change(nil) }
    func close() {}

    private func change(_ octets: Data?) throws(StateFileError) {
      let fails = state.withLock { state in
        state.writes += 1
        if !state.fails { state.octets = octets }
        return state.fails
      }
      if fails { throw StateFileError(.failed, "no") }
    }
  }

  private func recorder(_ store: MemoryStore, _ log: Lines) -> RestorationRecorder<SavedCentral> {
    RestorationRecorder(identifier: "x", store: store, log: log.handler)
  }

  /// Good text with something replaced, and a word of the line that it costs.
  static let damages: [(String, String, String)] = [
    ("\"version\" : 1", "\"version\" : 2", "version 2"),
    ("CoreBluetooth state", "something else", "no state"),
    ("\"central\"", "\"peripheral\"", "another manager"),
    ("\"identifier\" : \"x\"", "\"identifier\" : \"y\"", "another manager"), ("}", "", "damaged"),
    ("180D", "180G", "damaged"), ("180D", "+80D", "damaged"), ("\"isPrimary\"", "\"isSecondary\"", "damaged"),
    ("20", "2000000", "damaged"), ("\"endHandle\" : 5", "\"endHandle\" : 21", "contradicts"),
    ("\"endHandle\" : 5", "\"endHandle\" : 2", "contradicts"),
    ("\"handle\" : 4", "\"handle\" : 9", "contradicts"),
  ]

  @Test(arguments: damages)
  func aBadFileCostsOneLine(what: String, with: String, words: String) throws {
    let good = String(decoding: try SavedState(identifier: "x", contents: Self.full).encoded(), as: UTF8.self)
    let bad = good.replacingOccurrences(of: what, with: with)
    try #require(bad != good)
    let store = MemoryStore(Data(bad.utf8))
    let log = Lines()
    let recorder = recorder(store, log)
    #expect(recorder.load() == nil)
    #expect(log.all.count == 1)
    #expect(log.all.first?.contains(words) == true, "\(log.all)")
    // The next change replaces it, also where there is nothing left to save.
    recorder.save(SavedCentral(peripherals: [], scan: nil))
    #expect(store.state.withLock { $0.octets } == nil)
  }

  @Test func handlesInTheWrongOrderAreRefused() throws {
    var state = Self.full
    for handles: [AttributeHandle] in [[20, 1], [1], [], [0, 20], [1, 2, 3]] {
      state.peripherals[0].services?[0].handles = handles
      #expect(!state.isSound, "\(handles)")
    }
    state = Self.full
    state.peripherals[0].services?[0].included = [2]
    #expect(!state.isSound)
    state = Self.full
    state.peripherals[1].identifier = state.peripherals[0].identifier
    #expect(!state.isSound)
    #expect(Self.full.isSound)
  }

  /// Torn at any octet, as a file system without order might leave it.
  @Test func aTornFileNeverTraps() throws {
    let octets = try SavedState(identifier: "x", contents: Self.full).encoded()
    for count in stride(from: 0, to: octets.count, by: 7) {
      let log = Lines()
      #expect(recorder(MemoryStore(octets.prefix(count)), log).load() == nil)
      #expect(log.all.count == 1)
    }
    let log = Lines()
    #expect(recorder(MemoryStore(Data(repeating: UInt8(ascii: "["), count: 1 << 20)), log).load() == nil)
    #expect(log.all.count == 1)
  }

  // MARK: Writing

  @Test func aBurstOfChangesIsWrittenOnce() {
    let store = MemoryStore()
    let recorder = recorder(store, Lines())
    _ = recorder.load()
    #expect((0..<5).map { _ in recorder.mark() } == [true, false, false, false, false])
    for _ in 0..<3 { recorder.saveMarked { Self.full } }
    #expect(store.state.withLock { $0.writes } == 1)
    // What is the same is not written again.
    #expect(recorder.mark())
    recorder.saveMarked { Self.full }
    #expect(store.state.withLock { $0.writes } == 1)
  }

  @Test func whatAPeerCausesIsWrittenOncePerWhile() {
    let clock = ManualClock()
    let recorder = recorder(MemoryStore(), Lines())
    let written = Lines()
    for _ in 0..<10 { recorder.markLater(clock) { written.append("written") } }
    #expect(clock.waiting == 1)
    clock.fire()
    #expect(written.all == ["written"])
    recorder.markLater(clock) { written.append("written") }
    #expect(clock.waiting == 1)
    recorder.close()
    clock.fire()
    #expect(written.all == ["written"])
    #expect(!recorder.mark())
  }

  /// The file may be another manager's by then.
  @Test func nothingIsWrittenAfterTheEnd() {
    let store = MemoryStore()
    let recorder = recorder(store, Lines())
    #expect(recorder.mark())
    recorder.close()
    recorder.saveMarked { Self.full }
    recorder.save(Self.full)
    #expect(store.state.withLock { $0.writes } == 0)
  }

  /// A log that ends the manager, or asks it, meets no lock.
  @Test func theLogIsCalledWithoutALock() {
    let store = MemoryStore()
    store.state.withLock { $0.fails = true }
    let held = PosixMutex<RestorationRecorder<SavedCentral>?>(nil)
    let lines = Lines()
    let log = CBLogHandler { line in
      lines.append(line)
      held.withLock { $0 }?.close()
    }
    let recorder = RestorationRecorder<SavedCentral>(identifier: "x", store: store, log: log)
    held.withLock { $0 = recorder }
    _ = recorder.mark()
    recorder.saveMarked { Self.full }
    #expect(lines.all.count == 1)
    held.withLock { $0 = nil }
  }

  @Test func aFailureIsToldOnceAndTriedAgain() {
    let store = MemoryStore()
    let log = Lines()
    let recorder = recorder(store, log)
    store.state.withLock { $0.fails = true }
    recorder.save(Self.full)
    recorder.save(Self.full)
    #expect(log.all.count == 1)
    store.state.withLock { $0.fails = false }
    recorder.save(Self.full)
    #expect(store.state.withLock { $0.octets } != nil)
    store.state.withLock { $0.fails = true }
    recorder.save(SavedCentral(peripherals: [], scan: nil))
    #expect(log.all.count == 2)
  }

  /// A clock whose timers the test fires.
  private final class ManualClock: RadioClock {
    private let work = PosixMutex<[Int: @Sendable () -> Void]>([:])
    let now = Duration.zero

    var waiting: Int { work.withLock { $0.count } }

    func schedule(after delay: Duration, _ block: @escaping @Sendable () -> Void) -> ScheduledWork {
      let number = work.withLock { work in
        work[work.count] = block
        return work.count - 1
      }
      return ScheduledWork { [weak self] in _ = self?.work.withLock { $0.removeValue(forKey: number) } }
    }

    func fire() {
      let due = work.withLock { work in
        defer { work = [:] }
        return Array(work.values)
      }
      for block in due { block() }
    }

    func beginActivity() {}
    func endActivity() {}
    func watch(_ queue: DispatchQueue) {}
    func unwatch(_ queue: DispatchQueue) {}
  }

  // MARK: The file

  @Test func theFileIsTheUsersAloneAndReplacedWhole() throws {
    let folder = StateFolder()
    let file = try StateFile(folder: folder.path, name: "n")
    #expect(try file.read(limit: 10) == nil)
    try file.write(Data("one".utf8))
    #expect(try file.read(limit: 3) == Data("one".utf8))
    #expect(throws: StateFileError.self) { try file.read(limit: 2) }
    // What a dead process left half-way is in nobody's way.
    try folder.write("half", to: ".n.new")
    try file.write(Data("two".utf8))
    #expect(folder.files == ["n.json"])
    #expect(folder.text("n.json") == "two")
    func mode(_ path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
    #expect(try mode(folder.path) == 0o700)
    #expect(try mode(file.path) == 0o600)
    try file.remove()
    try file.remove()
    #expect(folder.files == [])
  }

  @Test func theLockEndsWithTheFileOrItsClosing() throws {
    let folder = StateFolder()
    var first: StateFile? = try StateFile(folder: folder.path, name: "n")
    #expect(throws: StateFileError(.inUse, "process \(getpid())")) {
      try StateFile(folder: folder.path, name: "n")
    }
    _ = try StateFile(folder: folder.path, name: "other")
    first?.close()
    first = nil
    first = try StateFile(folder: folder.path, name: "n")
    first = nil
    _ = try StateFile(folder: folder.path, name: "n")
  }

  @Test func whatIsNoRegularFileIsNotRead() throws {
    let folder = StateFolder()
    let file = try StateFile(folder: folder.path, name: "n")
    unsafe mkfifo(file.path, 0o600)
    #expect(try file.read(limit: 10)?.isEmpty != false)
    try FileManager.default.removeItem(atPath: file.path)
    try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: "/dev/zero")
    #expect(throws: StateFileError.self) { try file.read(limit: 10) }
    try FileManager.default.removeItem(atPath: file.path)
    try FileManager.default.createDirectory(atPath: file.path, withIntermediateDirectories: false)
    #expect(throws: StateFileError.self) { try file.read(limit: 10) }
    #expect(throws: StateFileError.self) { try file.write(Data([1])) }
    #expect(folder.files == ["n.json"])
  }
}
