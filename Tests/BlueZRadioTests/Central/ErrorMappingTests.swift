import DBus
import Radio
import Testing

@testable import BlueZRadio

@Suite("Errors of the daemon")
struct ErrorMappingTests {
  private static func verdict(_ name: String, _ message: String = "") -> Verdict {
    Verdict(DBusError(name: name, message: message))
  }

  @Test(
    "named errors of attributes",
    arguments: [
      (BlueZ.Failure.notPermitted, "Read not permitted", ATTErrorCode.readNotPermitted),
      (BlueZ.Failure.notPermitted, "Write not permitted", .writeNotPermitted),
      (BlueZ.Failure.notAuthorized, "", .insufficientAuthorization),
      (BlueZ.Failure.invalidArguments, "Invalid offset", .invalidOffset),
      (BlueZ.Failure.invalidArguments, "Invalid Length", .invalidAttributeValueLength),
      (BlueZ.Failure.invalidOffset, "", .invalidOffset),
      (BlueZ.Failure.invalidValueLength, "", .invalidAttributeValueLength),
      (BlueZ.Failure.failed, "Operation failed with ATT error: 0x80", ATTErrorCode(rawValue: 0x80)),
      (BlueZ.Failure.failed, "Operation failed with ATT error: 0x09", .prepareQueueFull),
    ])
  func att(name: String, message: String, code: ATTErrorCode) {
    #expect(Self.verdict(name, message) == .failed(.att(code), isAnswer: true))
  }

  @Test(
    "what asks for pairing",
    arguments: [
      (BlueZ.Failure.notPermitted, "Not paired", ATTErrorCode.insufficientAuthentication),
      (BlueZ.Failure.failed, "Operation failed with ATT error: 0x05", .insufficientAuthentication),
      (BlueZ.Failure.failed, "Operation failed with ATT error: 0x0f", .insufficientEncryption),
      (BlueZ.Failure.failed, "Operation failed with ATT error: 0x0C", .insufficientEncryptionKeySize),
    ])
  func unpaired(name: String, message: String, code: ATTErrorCode) {
    #expect(Self.verdict(name, message) == .unpaired(code))
  }

  @Test(
    "what may come of the end of the link is in doubt",
    arguments: [
      (BlueZ.Failure.failed, "Not connected"),
      (BlueZ.Failure.failed, "Operation failed with ATT error: 0x0e"),
      (BlueZ.Failure.failed, "Operation failed with ATT error: 0x"),
      (BlueZ.Failure.failed, "Operation failed"),
      (BlueZ.Failure.failed, "Operation failed with ATT error: 0x1ff"), (BlueZ.Failure.notConnected, ""),
      (DBusErrorName.unknownObject, "no such object"), ("org.example.Other", ""),
    ])
  func doubtful(name: String, message: String) {
    guard case .doubtful = Self.verdict(name, message) else {
      Issue.record("\(Self.verdict(name, message))")
      return
    }
  }

  @Test("another's operation and another's descriptor are waited for")
  func busy() {
    #expect(Self.verdict(BlueZ.Failure.inProgress) == .busy)
    #expect(Self.verdict(BlueZ.Failure.notPermitted, "Write acquired") == .held)
    #expect(Self.verdict(BlueZ.Failure.notPermitted, "Notify acquired") == .held)
  }

  @Test("no answer of the daemon is a time limit, the end of the bus a missing link")
  func withoutReply() {
    let timeout = Verdict(DBusError(kind: .timedOut, name: DBusErrorName.noReply, message: ""))
    if case .failed(.radio(let error), false) = timeout {
      #expect(error.code == .timeout)
    } else {
      Issue.record("\(timeout)")
    }
    let end = Verdict(DBusError(kind: .disconnected, name: DBusErrorName.disconnected, message: ""))
    if case .doubtful(.radio(let error), false) = end {
      #expect(error.code == .notConnected)
    } else {
      Issue.record("\(end)")
    }
  }

  @Test(
    "most failures to connect pass",
    arguments: [
      (BlueZ.Failure.failed, "le-connection-abort-by-local"), (BlueZ.Failure.inProgress, ""),
      (BlueZ.Failure.notReady, ""), (BlueZ.Failure.alreadyConnected, ""), (DBusErrorName.unknownObject, ""),
    ])
  func passing(name: String, message: String) {
    #expect(LinkMachine.Failure(DBusError(name: name, message: message)) == .passing)
  }

  @Test("what the user may not do, or the daemon cannot, does not pass")
  func permanent() {
    for name in [DBusErrorName.accessDenied, BlueZ.Failure.notSupported] {
      guard case .permanent = LinkMachine.Failure(DBusError(name: name, message: "")) else {
        Issue.record("\(name) passes")
        continue
      }
    }
    let timeout = DBusError(kind: .timedOut, name: DBusErrorName.noReply, message: "")
    #expect(LinkMachine.Failure(timeout) == .stuck)
  }

  @Test(
    "reasons of newer daemons",
    arguments: [
      ("org.bluez.Reason.Timeout", RadioError.Code.supervisionTimeout),
      ("org.bluez.Reason.Remote", .peerTerminated), ("org.bluez.Reason.Unknown", .peerTerminated),
      ("", .peerTerminated),
    ])
  func reasons(reason: String, code: RadioError.Code) {
    #expect(RadioError(disconnection: reason, "text").code == code)
  }
}
