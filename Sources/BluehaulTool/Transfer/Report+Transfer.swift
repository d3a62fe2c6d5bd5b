internal import BulkTransfer
internal import Foundation

extension Report {
  static func searching(_ target: DeviceTarget) -> Report {
    let name: String
    switch target {
    case .name(let text): name = text
    case .identifier(let identifier): name = identifier.uuidString
    case .oneOf, .any: name = target.description
    }
    return Report(
      "searching", .detail, ["looking for \(Printable.text(name))"], [.init("device", .string(name))])
  }

  static func connecting(attempt: Int) -> Report {
    Report(
      "connecting", .detail, ["connecting, attempt \(attempt)"], [.init("attempt", .integer(attempt))])
  }

  static func carrier(_ kind: CarrierKind) -> Report {
    let words = kind == .l2cap ? "an L2CAP channel" : "GATT writes without response"
    return Report(
      "carrier", .detail, ["connected; data goes over \(words)"], [.init("via", .string(kind.rawValue))])
  }

  static func channelAbandoned(_ why: String) -> Report {
    Report(
      "channel_abandoned", .warning,
      ["the L2CAP channel is of no use (\(Printable.text(why))); going on over GATT"],
      [.init("message", .string(why))])
  }

  static func linkLost(_ why: String, object: String, confirmed: Int) -> Report {
    Report(
      "link_lost", .note,
      [
        "link lost (\(Printable.text(why))); \(Amounts.bytes(confirmed)) of \(Printable.text(object)) are confirmed"
      ],
      [
        .init("message", .string(why)), .init("object", .string(object)),
        .init("confirmed", .integer(confirmed)),
      ])
  }

  static func declined(_ why: String) -> Report {
    Report(
      "declined", .note, ["the device does not take it now (\(Printable.text(why))); asking again"],
      [.init("message", .string(why))])
  }

  static func goingOn(_ name: String, from durable: Int, of size: Int) -> Report {
    let words =
      durable >= size
      ? "the receiver holds all of \(Printable.text(name)) already"
      : "the receiver holds \(Amounts.bytes(durable)) of \(Printable.text(name)); going on there"
    return Report(
      "resumed", .note, [words],
      [.init("object", .string(name)), .init("from", .integer(durable)), .init("size", .integer(size))])
  }

  static func verified(_ name: String, size: Int, _ digest: SHA256Digest) -> Report {
    Report(
      "verified", .note,
      ["verified \(Printable.text(name)): SHA-256 \(digest.hex) as read back by the receiver"],
      [
        .init("object", .string(name)), .init("size", .integer(size)), .init("sha256", .string(digest.hex)),
      ])
  }
}
