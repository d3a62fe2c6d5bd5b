internal import Dispatch

/// An object that peers can call, as long as this lives and ``remove()`` was not called.
public final class DBusExport: Sendable {
  /// Tells one export at a path from a later one.
  final class Token: Sendable {}

  public let path: ObjectPath
  let token: Token
  private let core: @Sendable () -> ConnectionCore?

  init(_ core: ConnectionCore, _ path: ObjectPath, _ token: Token) {
    self.path = path
    self.token = token
    self.core = { [weak core] in core }
  }

  deinit { remove() }

  /// Takes the object away; object managers above it tell so. Idempotent, from any thread.
  public func remove() { whileExported { [path] core in core.removeExport(at: path) } }

  /// Tells that properties have changed: reads them and sends what their declarations say, in one signal.
  public func propertiesChanged(_ names: [String], of interface: String) {
    whileExported { [path] core in core.announceChanges(of: names, in: interface, at: path) }
  }

  /// Sends a signal of this object, to all or to one; one that comes after ``remove()`` is not sent.
  ///
  /// Throws with kind ``DBusError/Kind/invalidArgument``; a bus that does not take it ends the connection.
  public func emit(
    _ signal: DBusSignal, of interface: String, _ body: [DBusValue] = [], to destination: String? = nil
  ) throws(DBusError) {
    guard body.map(\.type) == signal.arguments.map(\.type) else {
      throw .invalid("signal \(signal.name) is sent with other types than it declares")
    }
    let message = try DBusMessage.signal(
      path: path, interface: interface, member: signal.name, body: body, destination: destination)
    whileExported { $0.post(message) }
  }

  /// Adds an interface; object managers above tell so.
  public func add(_ interface: DBusInterface) async throws(DBusError) {
    guard let core = core() else { throw .disconnected() }
    let result = await withCheckedContinuation { continuation in
      core.queue.async { [path, token] in
        continuation.resume(
          returning: Result { () throws(DBusError) in
            guard core.end != nil || core.objects.holds(token, at: path) else {
              throw .invalid("the object at \(path) was removed")
            }
            try core.addInterface(interface, at: path)
          })
      }
    }
    try result.get()
  }

  /// Takes an interface away; object managers above tell so.
  public func removeInterface(_ name: String) {
    whileExported { [path] core in core.removeInterface(name, at: path) }
  }

  private func whileExported(_ body: @escaping @Sendable (ConnectionCore) -> Void) {
    guard let core = core() else { return }
    core.queue.async { [path, token] in
      if core.objects.holds(token, at: path) { body(core) }
    }
  }
}

extension DBusConnection {
  /// Makes an object that answers calls of peers: methods and properties of its interfaces, introspection,
  /// and, of an object manager, `GetManagedObjects` for everything exported below.
  ///
  /// Keep what is returned. Throws with kind ``DBusError/Kind/invalidArgument`` where the path is taken or a declaration is not valid.
  /// Source: D-Bus Specification, "Standard Interfaces".
  public func export(
    _ interfaces: [DBusInterface], at path: ObjectPath, isObjectManager: Bool = false
  ) async throws(DBusError) -> DBusExport {
    let export = DBusExport(core, path, DBusExport.Token())
    let result = await withCheckedContinuation { continuation in
      start(export, interfaces, isObjectManager) { continuation.resume(returning: $0) }
    }
    try result.get()
    return export
  }

  /// Exports as ``export(_:at:isObjectManager:)``, without suspending; the completion runs once, on the queue.
  public func export(
    _ interfaces: [DBusInterface], at path: ObjectPath, isObjectManager: Bool = false,
    completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
  ) -> DBusExport {
    let export = DBusExport(core, path, DBusExport.Token())
    start(export, interfaces, isObjectManager, completion)
    return export
  }

  private func start(
    _ export: DBusExport, _ interfaces: [DBusInterface], _ isObjectManager: Bool,
    _ completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
  ) {
    let object = ObjectTree.Object(interfaces: interfaces, isManager: isObjectManager, token: export.token)
    core.queue.async { [core, path = export.path] in
      completion(Result { () throws(DBusError) in try core.export(object, at: path) })
    }
  }
}
