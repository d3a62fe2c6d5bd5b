extension ConnectionCore {
  // MARK: Calls of peers

  func answer(_ call: DBusMessage, _ failure: DBusError?) {
    if let failure { return postError(failure, to: call) }
    do {
      switch try objects.outcome(of: call) {
      case .reply(let values): try postReply(values, to: call)
      case .machineIdentifier: try postReply([.string(MachineIdentifier.read())], to: call)
      case .written(let interface, let property):
        try postReply([], to: call)
        if let path = call.path { announceChanges(of: [property], in: interface, at: path) }
      case .invoke(let method): try invoke(method, call)
      }
    } catch { postError(error, to: call) }
  }

  private func invoke(_ method: DBusMethod, _ call: DBusMessage) throws(DBusError) {
    guard unansweredCalls < limits.unansweredCalls else {
      throw DBusError(name: DBusErrorName.limitsExceeded, message: "too many calls wait for an answer")
    }
    unansweredCalls += 1
    method.handler(DBusInvocation(call, outputs: method.outputs.map(\.type), self))
  }

  /// A method has answered; nil where the caller wants no answer.
  func finishInvocation(_ answer: DBusMessage?) {
    unansweredCalls -= 1
    if let answer { post(answer) }
  }

  private func postReply(_ values: [DBusValue], to call: DBusMessage) throws(DBusError) {
    let reply = try DBusMessage.reply(to: call, body: values)
    if call.expectsReply { post(reply) }
  }

  private func postError(_ error: DBusError, to call: DBusMessage) {
    if call.expectsReply { post(.error(to: call, error)) }
  }

  // MARK: Exports

  func export(_ object: ObjectTree.Object, at path: ObjectPath) throws(DBusError) {
    if let end { throw end }
    try objects.insert(object, at: path)
    announceAdded(object.interfaces, at: path)
  }

  func removeExport(at path: ObjectPath) {
    guard let object = objects.remove(path) else { return }
    announceRemoved(object.interfaces.map(\.name), at: path)
  }

  func addInterface(_ interface: DBusInterface, at path: ObjectPath) throws(DBusError) {
    if let end { throw end }
    try objects.insert(interface, at: path)
    announceAdded([interface], at: path)
  }

  func removeInterface(_ name: String, at path: ObjectPath) {
    if objects.removeInterface(name, at: path) { announceRemoved([name], at: path) }
  }

  private func announceAdded(_ interfaces: [DBusInterface], at path: ObjectPath) {
    let managers = objects.managers(above: path)
    guard !managers.isEmpty else { return }
    let body = [.objectPath(path), ObjectTree.interfacesAndProperties(interfaces)]
    for manager in managers { postSignal(DBusWellKnown.objectManager, "InterfacesAdded", body, at: manager) }
  }

  private func announceRemoved(_ names: [String], at path: ObjectPath) {
    for manager in objects.managers(above: path) {
      postSignal(
        DBusWellKnown.objectManager, "InterfacesRemoved", [.objectPath(path), names.dbusValue], at: manager)
    }
  }

  /// Source: D-Bus Specification, "org.freedesktop.DBus.Properties.PropertiesChanged".
  func announceChanges(of names: [String], in interfaceName: String, at path: ObjectPath) {
    guard let interface = objects.objects[path]?.interface(interfaceName) else { return }
    var changed: [DBusEntry] = []
    var invalidated: [String] = []
    for property in interface.properties where names.contains(property.name) {
      switch property.changes {
      case .silent, .constant: continue
      case .invalidates: invalidated.append(property.name)
      case .value:
        if let value = try? property.read() {
          changed.append(DBusEntry(key: .string(property.name), value: .variant(value)))
        } else {
          invalidated.append(property.name)
        }
      }
    }
    guard !changed.isEmpty || !invalidated.isEmpty else { return }
    let values = DBusValue.dictionary(key: .string, value: .variant, changed)
    postSignal(
      DBusWellKnown.properties, "PropertiesChanged",
      [.string(interfaceName), values, invalidated.dbusValue], at: path)
  }

  private func postSignal(_ interface: String, _ member: String, _ body: [DBusValue], at path: ObjectPath) {
    do { post(try .signal(path: path, interface: interface, member: member, body: body)) } catch {
      // Each value was checked; together they are more than a message holds. Receivers would miss a change, so this is the end.
      finish(error)
    }
  }
}
