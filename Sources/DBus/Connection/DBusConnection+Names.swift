/// What to do where a name is owned already. Source: D-Bus Specification, "org.freedesktop.DBus.RequestName".
public struct NameFlags: OptionSet, Hashable, Sendable {
  public let rawValue: UInt32

  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Another connection that asks with ``replaceExisting`` gets the name.
  public static let allowReplacement = NameFlags(rawValue: 1)
  /// Takes the name from an owner that allows it.
  public static let replaceExisting = NameFlags(rawValue: 2)
  /// Gets the name now or not at all.
  public static let doNotQueue = NameFlags(rawValue: 4)
}

/// How the bus answered a request for a name.
public enum NameRequestReply: UInt32, Hashable, Sendable {
  case primaryOwner = 1
  case inQueue = 2
  /// Somebody else has it, and this connection does not wait for it.
  case exists = 3
  case alreadyOwner = 4
}

/// How the bus answered a release of a name.
public enum NameReleaseReply: UInt32, Hashable, Sendable {
  case released = 1
  case nonExistent = 2
  case notOwner = 3
}

extension DBusConnection {
  /// Asks for a well-known name; ``followOwner(of:onEnd:_:)`` tells of its loss.
  public func requestName(_ name: String, _ flags: NameFlags = []) async throws -> NameRequestReply {
    try checkOwnable(name)
    let code = try await callBus("RequestName", [.string(name), .uint32(flags.rawValue)]).read(UInt32.self)
    guard let reply = NameRequestReply(rawValue: code) else {
      throw DBusError.unexpected("RequestName was answered with \(code)")
    }
    return reply
  }

  /// Gives a name back, or leaves its queue.
  public func releaseName(_ name: String) async throws -> NameReleaseReply {
    try checkOwnable(name)
    let code = try await callBus("ReleaseName", [.string(name)]).read(UInt32.self)
    guard let reply = NameReleaseReply(rawValue: code) else {
      throw DBusError.unexpected("ReleaseName was answered with \(code)")
    }
    return reply
  }

  /// The unique name of a name's owner; nil if there is none.
  public func owner(of name: String) async throws -> String? {
    try DBusName.check(name, as: .bus)
    do { return try await callBus("GetNameOwner", [.string(name)]).read(String.self) } catch let error
      as DBusError
      where error.kind == .reply && error.name == DBusErrorName.nameHasNoOwner
    { return nil }
  }

  private func checkOwnable(_ name: String) throws(DBusError) {
    try DBusName.check(name, as: .bus)
    guard !DBusName.isUnique(name) else { throw .invalid("unique names are given by the bus") }
  }

  private func callBus(_ member: String, _ body: [DBusValue]) async throws -> DBusMessage {
    try await call(
      .call(
        destination: DBusWellKnown.bus, path: DBusWellKnown.busPath, interface: DBusWellKnown.bus,
        member: member, body: body))
  }
}
