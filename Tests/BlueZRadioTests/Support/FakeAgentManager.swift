import DBus

@testable import BlueZRadio

/// bluetoothd's side of pairing agents.
struct FakeAgentManager: Sendable {
  static let path = BlueZ.agentManagerPath

  struct Agent: Sendable {
    let client: String
    let path: ObjectPath
    let capability: String

    /// Asks it for a pairing, as the daemon does where neither side can show or enter anything.
    func authorizes(_ device: ObjectPath, _ bus: DBusConnection) async -> Bool {
      do {
        _ = try await bus.call(
          .call(
            destination: client, path: path, interface: BlueZ.agent, member: "RequestAuthorization",
            body: [.objectPath(device)]))
        return true
      } catch { return false }
    }
  }

  /// Agents as they are registered.
  let agents = Arrivals<Agent>()

  var interface: DBusInterface {
    DBusInterface(
      BlueZ.agentManager,
      methods: [
        DBusMethod(
          "RegisterAgent", in: [DBusArgument("agent", .objectPath), DBusArgument("capability", .string)]
        ) { [agents] invocation in
          guard case .objectPath(let path)? = invocation.message.body.first,
            case .string(let capability)? = invocation.message.body.last,
            let sender = invocation.message.sender
          else { return }
          try? invocation.reply()
          agents.put(Agent(client: sender, path: path, capability: capability))
        }
      ])
  }
}
