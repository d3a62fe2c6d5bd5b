import DBus
import Foundation
import PrivateBus
import Radio
import Testing

@testable import BlueZRadio

@Suite("Requests to a peripheral at bluetoothd", PrivateBus.isThere, .timeLimit(.minutes(30)))
struct PeripheralRequestTests {
  @Test("Reads ask the client, from the offset on, and tell what it answers")
  func reads() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1)]))
    async let answer = rig.daemon.call(
      "ReadValue", published.characteristics[0], of: published.client, [],
      ["offset": .uint16(5), "mtu": .uint16(185)])
    let (id, offset) = try await rig.read()
    #expect(offset == 5)
    #expect(rig.peripheral.attMTU(of: PeripheralRig.central) == 183)
    rig.peripheral.respond(toRead: id, with: .success(Data([1, 2])))
    rig.peripheral.respond(toRead: id, with: .success(Data([3])))
    #expect(try await answer == [.bytes([1, 2])])
  }

  @Test("Refusals reach the daemon in its words", arguments: [0x07, 0x81, 0x0F] as [UInt8])
  func refusedReads(_ code: UInt8) async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1)]))
    async let answer = rig.daemon.call("ReadValue", published.characteristics[0], of: published.client)
    let (id, _) = try await rig.read()
    rig.peripheral.respond(toRead: id, with: .failure(ATTErrorCode(rawValue: code)))
    let expected = ATTAnswer.refusal(ATTErrorCode(rawValue: code), of: .read)
    do {
      _ = try await answer
      Issue.record("not refused")
    } catch let error as DBusError {
      #expect(error.name == expected.name && error.message == expected.message)
    }
  }

  @Test("A request that nobody answers is refused before the daemon gives up, and a late answer is nothing")
  func lateAnswers() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1, [.read, .write])]))
    let path = published.characteristics[0]
    async let answer = rig.daemon.call("ReadValue", path, of: published.client)
    let (id, _) = try await rig.read()
    rig.clock.advance(by: .milliseconds(4400))
    rig.clock.advance(by: .milliseconds(100))
    do {
      _ = try await answer
      Issue.record("answered")
    } catch let error as DBusError {
      #expect(error.name == DBusErrorName.failed)
    }
    rig.peripheral.respond(toRead: id, with: .success(Data([1])))
    async let next = rig.daemon.call("WriteValue", path, of: published.client, [.bytes([4])])
    let (nextID, write, needsResponse) = try await rig.written()
    #expect(needsResponse && write.value == Data([4]) && write.offset == 0)
    // The answer to another kind of request is a mistake, which does not leave it open.
    rig.peripheral.respond(toWrites: nextID, with: .success(()))
    _ = try await next
  }

  @Test("A write that wants no answer needs none and gets none")
  func commands() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1, [.write, .writeWithoutResponse])]))
    for number in 0..<20 as Range<UInt8> {
      let message = try DBusMessage.call(
        destination: published.client, path: published.characteristics[0],
        interface: BlueZ.gattCharacteristic, member: "WriteValue",
        body: [.bytes([number]), .options(["device": .objectPath(FakeManagers.device)])])
      try await rig.daemon.bus.send(message)
    }
    for number in 0..<20 as Range<UInt8> {
      let (id, write, needsResponse) = try await rig.written()
      #expect(write.value == Data([number]) && !needsResponse)
      rig.peripheral.respond(toWrites: id, with: .failure(.unlikelyError))
    }
  }

  @Test("Permissions that a property hides are checked here")
  func permissions() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(
      .plain(
        7,
        [
          .plain(1, [.read, .write], []),
          .plain(3, [.read, .write], [.read, .write], value: Data((0..<100).map { UInt8($0) })),
        ]))
    let (closed, fixed) = (published.characteristics[0], published.characteristics[1])
    for (path, member, body) in [
      (closed, "ReadValue", []), (closed, "WriteValue", [.bytes([1])]), (fixed, "WriteValue", [.bytes([1])]),
    ] as [(ObjectPath, String, [DBusValue])] {
      await #expect(throws: DBusError.self) {
        _ = try await rig.daemon.call(member, path, of: published.client, body)
      }
    }
    #expect(
      try await rig.daemon.call("ReadValue", fixed, of: published.client, [], ["offset": .uint16(98)])
        == [.bytes([98, 99])])
    await #expect(throws: DBusError.self) {
      _ = try await rig.daemon.call("ReadValue", fixed, of: published.client, [], ["offset": .uint16(101)])
    }
    try await rig.expectNothing()
  }

  @Test("Nobody but the daemon may call")
  func strangers() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1, [.read, .write, .notify])]))
    let stranger = try await DBusConnection.open(rig.bus.address)
    let options = DBusValue.options(["device": .objectPath(FakeManagers.device)])
    for (member, body) in [
      ("ReadValue", [options]), ("WriteValue", [.bytes([1]), options]), ("AcquireNotify", [options]),
      ("StartNotify", []), ("StopNotify", []), ("Confirm", []),
    ] as [(String, [DBusValue])] {
      await #expect(throws: DBusError.self, "\(member)") {
        _ = try await stranger.call(
          .call(
            destination: published.client, path: published.characteristics[0],
            interface: BlueZ.gattCharacteristic, member: member, body: body))
      }
    }
    try await rig.expectNothing()
  }

  @Test("Requests of a link that has ended are nobody's")
  func endOfLink() async throws {
    let rig = try await PeripheralRig()
    let published = try await rig.publish(.plain(7, [.plain(1)]))
    async let answer = rig.daemon.call("ReadValue", published.characteristics[0], of: published.client)
    let (id, _) = try await rig.read()
    rig.daemon.setConnected(false)
    do {
      _ = try await answer
      Issue.record("answered")
    } catch let error as DBusError { #expect(error.name == DBusErrorName.failed) }
    rig.peripheral.respond(toRead: id, with: .success(Data()))
    try await rig.expectNothing()
    #expect(rig.peripheral.attMTU(of: PeripheralRig.central) == nil)
  }
}
