import DBus
import Foundation
import Radio
import Testing

@testable import BlueZRadio

@Suite("A service as objects of bluetoothd") struct ApplicationTreeTests {
  @Test(
    "Flags say properties and permissions",
    arguments: [
      (LocalCharacteristic.plain(1, .read), ["read"]),
      (.plain(1, .read, .write), ["read"]),
      (.plain(1, .read, .readEncrypted), ["encrypt-read"]),
      (.plain(1, [.notify], .read), ["notify"]),
      (.plain(1, [.write, .writeWithoutResponse]), ["write-without-response", "write"]),
      (.plain(1, .write, .writeEncrypted), ["encrypt-write"]),
      (.plain(1, .writeWithoutResponse, .writeEncrypted), ["write-without-response", "encrypt-write"]),
      (.plain(1, .read, [.read, .writeEncrypted]), ["read"]),
      (.plain(1, [.notify, .indicate], isProtected: true), ["encrypt-notify", "encrypt-indicate"]),
      (.plain(1, [.indicate]), ["indicate"]),
      (
        .plain(1, [.broadcast, .authenticatedSignedWrites, .extendedProperties]),
        ["broadcast", "authenticated-signed-writes", "extended-properties"]
      ),
    ] as [(LocalCharacteristic, [String])])
  func flags(_ characteristic: LocalCharacteristic, _ words: [String]) {
    #expect(CharacteristicFlags(characteristic).words == words)
  }

  @Test("The order of paths is the order of attributes, however many there are")
  func order() throws {
    let descriptors = (0..<17).map {
      LocalDescriptor(uuid: BluetoothUUID(UInt16(0x2900) + 4 + $0), value: Data())
    }
    let service = LocalService.plain(1, (0..<300).map { .plain($0, descriptors: descriptors) })
    let tree = try ApplicationTree([service], root: "/app")
    let paths = tree.characteristics.flatMap { [$0.path] + $0.descriptors.map(\.path) }
    #expect(paths == paths.sorted())
    #expect(Set(paths).count == 300 * 18)
    #expect(paths.allSatisfy { $0.isWithin(tree.services[0].path) })
    #expect(tree.characteristics.map(\.local.id) == service.characteristics.map(\.id))
    #expect(tree.services.count == 1 && tree.services[0].path.isWithin("/app"))
  }

  @Test("Services that are included come first, and are named by those that include them")
  func includes() throws {
    let services = [
      LocalService.plain(3, [.plain(1)]), .plain(2, includes: [LocalServiceID(3)]),
      .plain(1, [.plain(2)], includes: [LocalServiceID(3), LocalServiceID(2)]),
    ]
    let tree = try ApplicationTree(services, root: "/app")
    let paths = tree.services.map(\.path)
    #expect(paths == paths.sorted())
    #expect(tree.services.map(\.includes) == [[], [paths[0]], [paths[0], paths[1]]])
    #expect(tree.characteristics.map(\.service) == [paths[0], paths[2]])
    #expect(throws: RadioError.self) { try ApplicationTree(services.reversed(), root: "/app") }
  }

  @Test("Descriptors that the daemon makes are left to it")
  func ownDescriptors() throws {
    let given = [0x2900, 0x2901, 0x2902, 0x2904].map {
      LocalDescriptor(uuid: BluetoothUUID(UInt16($0)), value: Data([1]))
    }
    let tree = try ApplicationTree([.plain(1, [.plain(1, descriptors: given)])], root: "/app")
    #expect(tree.characteristics[0].descriptors.map(\.local) == [given[1], given[3]])
  }

  @Test(
    "What the daemon would refuse or spoil is refused",
    arguments: [
      (
        LocalService(
          id: LocalServiceID(1), uuid: BluetoothUUID(UInt16(0x1800)), isPrimary: true, characteristics: []),
        .uuidNotAllowed
      ),
      (
        LocalService(
          id: LocalServiceID(1), uuid: BluetoothUUID(UInt16(0x1801)), isPrimary: true, characteristics: []),
        .uuidNotAllowed
      ),
      (.plain(1, includes: [LocalServiceID(2)]), .invalidParameters),
      (.plain(1, includes: [LocalServiceID(1)]), .invalidParameters),
      (.plain(1, [.plain(1), .plain(1)]), .invalidParameters),
      (.plain(1, [.plain(1, value: Data(count: 513))]), .invalidParameters),
      (
        .plain(
          1,
          [
            .plain(
              1, descriptors: [LocalDescriptor(uuid: BluetoothUUID(UInt16(0x2901)), value: Data(count: 513))])
          ]),
        .invalidParameters
      ),
    ] as [(LocalService, RadioError.Code)])
  func refusals(_ service: LocalService, _ code: RadioError.Code) {
    #expect { try ApplicationTree([service], root: "/app") } throws: { ($0 as? RadioError)?.code == code }
  }

  @Test("UUIDs are written in full and in lower case")
  func text() {
    #expect(BluetoothUUID(UInt16(0xFEE0)).longText == "0000fee0-0000-1000-8000-00805f9b34fb")
  }
}

@Suite("Refusals as bluetoothd understands them") struct ATTAnswerTests {
  @Test(
    "Codes that reach the central",
    arguments: [
      (ATTErrorCode.invalidOffset, "org.bluez.Error.InvalidOffset", nil),
      (.invalidAttributeValueLength, "org.bluez.Error.InvalidValueLength", nil),
      (.requestNotSupported, "org.bluez.Error.NotSupported", nil),
      (.insufficientAuthorization, "org.bluez.Error.NotAuthorized", nil),
      (.writeNotPermitted, "org.bluez.Error.NotPermitted", nil),
      (ATTErrorCode(rawValue: 0xFE), "org.bluez.Error.InProgress", nil),
      (ATTErrorCode(rawValue: 0x80), "org.bluez.Error.Failed", "0x80"),
      (ATTErrorCode(rawValue: 0x9F), "org.bluez.Error.Failed", "0x9f"),
    ] as [(ATTErrorCode, String, String?)])
  func known(_ code: ATTErrorCode, _ name: String, _ text: String?) {
    let error = ATTAnswer.refusal(code, of: .write)
    #expect(error.name == name)
    if let text { #expect(error.message == text) }
    #expect(ATTAnswer.codeOnAir(code, of: .write) == code)
  }

  @Test(
    "All others are unlikely errors, never application codes",
    arguments: [
      .unlikelyError, .insufficientEncryption, .insufficientAuthentication, .insufficientResources,
      .readNotPermitted, .invalidHandle, ATTErrorCode(rawValue: 0x7F), ATTErrorCode(rawValue: 0xA0),
    ] as [ATTErrorCode])
  func unknown(_ code: ATTErrorCode) {
    let name = ATTAnswer.refusal(code, of: .write).name
    #expect(!name.hasPrefix("org.bluez.Error"))
    #expect(ATTAnswer.codeOnAir(code, of: .write) == .unlikelyError)
  }

  @Test("A read that is not permitted is told as such")
  func reads() {
    #expect(ATTAnswer.codeOnAir(.readNotPermitted, of: .read) == .readNotPermitted)
    #expect(ATTAnswer.codeOnAir(.writeNotPermitted, of: .read) == .unlikelyError)
  }
}

@Suite("Options of calls for a central") struct ServerCallTests {
  private func options(_ values: [String: DBusValue]) -> DBusValue {
    values.mapValues { DBusVariant(containing: $0) }.dbusValue
  }

  @Test("All that is told")
  func whole() throws {
    let call = try ServerCall(
      options([
        "device": .objectPath("/org/bluez/hci0/dev_1"), "offset": .uint16(22), "mtu": .uint16(185),
        "prepare-authorize": .boolean(true), "link": .string("LE"), "new": .double(1),
      ]))
    #expect(call.device == "/org/bluez/hci0/dev_1" && call.offset == 22 && call.mtu == 185 && call.isPrepare)
  }

  @Test("Only the device must be there")
  func least() throws {
    let call = try ServerCall(options(["device": .objectPath("/d")]))
    #expect(call.offset == 0 && call.mtu == nil && !call.isPrepare)
  }

  @Test(
    "Other types are errors",
    arguments: [
      [:], ["device": .string("/d")], ["device": .objectPath("/d"), "offset": .int32(-1)],
      ["device": .objectPath("/d"), "mtu": .string("23")],
      ["device": .objectPath("/d"), "prepare-authorize": .uint16(1)],
    ] as [[String: DBusValue]])
  func wrong(_ values: [String: DBusValue]) {
    #expect(throws: DBusError.self) { try ServerCall(options(values)) }
  }
}
