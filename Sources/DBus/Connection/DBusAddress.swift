internal import Foundation

/// Which bus to connect to. Source: D-Bus Specification, "Well-known Message Bus Instances", "Server Addresses".
public enum DBusAddress: Hashable, Sendable {
  /// The bus of the machine: `DBUS_SYSTEM_BUS_ADDRESS`, or the socket that the specification names.
  case system
  /// The bus of the user's session: `DBUS_SESSION_BUS_ADDRESS`, or the socket in `XDG_RUNTIME_DIR`.
  case session
  /// Such as `unix:path=/run/dbus/system_bus_socket`.
  case address(String)

  /// The address in its text form, by the environment of the process where none is given; throws with kind ``DBusError/Kind/invalidArgument`` where the environment names none.
  public func text(
    environment: [String: String]? = nil
  ) throws(DBusError) -> String {
    let environment = environment ?? ProcessInfo.processInfo.environment
    func set(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
    switch self {
    case .system:
      return set("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/var/run/dbus/system_bus_socket"
    case .session:
      if let address = set("DBUS_SESSION_BUS_ADDRESS") { return address }
      if let directory = set("XDG_RUNTIME_DIR") { return "unix:path=\(Self.escaped(directory))/bus" }
      throw .invalid(
        "no session bus: neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR is set",
        name: DBusErrorName.badAddress)
    case .address(let text):
      return text
    }
  }

  /// Whether a bus can be there, without connecting to it: where all that the address names are sockets in the file system, whether one of them exists.
  public func isPresent(environment: [String: String]? = nil) -> Bool {
    guard let text = try? text(environment: environment) else { return false }
    return text.split(separator: ";").contains { server in
      let parts = server.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      let path = parts.last?.split(separator: ",").first { $0.hasPrefix("path=") }
      guard parts.count == 2, parts.first == "unix", let path else { return parts.count == 2 }
      guard let path = path.dropFirst("path=".count).removingPercentEncoding else { return false }
      return FileManager.default.fileExists(atPath: path)
    }
  }

  /// Octets other than the optionally-escaped set become percent signs with two hexadecimal digits.
  static func escaped(_ value: String) -> String {
    var text = ""
    for byte in value.utf8 {
      if DBusName.isWord(byte) || "-/.\\*".utf8.contains(byte) {
        text.unicodeScalars.append(UnicodeScalar(byte))
      } else {
        text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return text
  }
}

/// How much may wait. What goes beyond is an error, never a loss that nobody sees.
public struct DBusLimits: Hashable, Sendable {
  /// Octets that wait for the bus to read them.
  public var outgoingOctets = 64 << 20
  /// Calls of peers that were not answered yet.
  public var unansweredCalls = 4096
  /// How long ``DBusConnection/close()`` waits until what was sent has left.
  public var closing = Duration.seconds(2)

  public init() {}
}
