extension ObjectTree {
  /// Finds what a call is for; throws the error to answer with.
  ///
  /// Source: D-Bus Specification, "Standard Interfaces"; "Message Types" for calls without an interface.
  func outcome(of call: DBusMessage) throws(DBusError) -> Outcome {
    guard let path = call.path, let member = call.member else {
      throw DBusError(name: DBusErrorName.unknownObject, message: "a call without a path or a member")
    }
    // Peers answer for themselves, whatever the path.
    if call.interface == DBusWellKnown.peer { return try peer(member, call) }
    // Most calls are for an object: what lies below it is looked for only where that matters.
    guard let object = objects[path] ?? node(at: path) else {
      throw DBusError(name: DBusErrorName.unknownObject, message: "there is no object at \(path)")
    }
    guard let name = call.interface else { return try anyInterface(member, call, object, path) }
    switch name {
    case DBusWellKnown.introspectable:
      guard member == "Introspect" else { throw unknown(member, name) }
      try Self.check(call, "")
      return .reply([.string(Introspection.xml(of: object, children: children(of: path) ?? []))])
    case DBusWellKnown.properties where objects[path] != nil:
      return try properties(member, call, object)
    case DBusWellKnown.objectManager where object.isManager:
      guard member == "GetManagedObjects" else { throw unknown(member, name) }
      try Self.check(call, "")
      return .reply([managedObjects(below: path)])
    default:
      guard let interface = object.interface(name) else {
        throw DBusError(
          name: DBusErrorName.unknownInterface, message: "\(path) has no interface “\(name)”")
      }
      guard let method = interface.methods.first(where: { $0.name == member }) else {
        throw unknown(member, name)
      }
      try Self.check(call, method.inputText)
      return .invoke(method)
    }
  }

  /// What stands for a path that has no object but others below it.
  private func node(at path: ObjectPath) -> Object? {
    children(of: path).map { _ in Object(interfaces: [], isManager: false, token: DBusExport.Token()) }
  }

  /// A call without an interface is for any that has the member.
  private func anyInterface(
    _ member: String, _ call: DBusMessage, _ object: Object, _ path: ObjectPath
  ) throws(DBusError) -> Outcome {
    for method in object.interfaces.flatMap(\.methods) where method.name == member {
      try Self.check(call, method.inputText)
      return .invoke(method)
    }
    var call = call
    switch member {
    case "Introspect": call.interface = DBusWellKnown.introspectable
    case "Get", "GetAll", "Set": call.interface = DBusWellKnown.properties
    case "GetManagedObjects": call.interface = DBusWellKnown.objectManager
    case "Ping", "GetMachineId": call.interface = DBusWellKnown.peer
    default: throw unknown(member, "any interface of \(path)")
    }
    return try outcome(of: call)
  }

  private func peer(_ member: String, _ call: DBusMessage) throws(DBusError) -> Outcome {
    switch member {
    case "Ping":
      try Self.check(call, "")
      return .reply([])
    case "GetMachineId":
      try Self.check(call, "")
      return .machineIdentifier
    default: throw unknown(member, DBusWellKnown.peer)
    }
  }

  private func properties(
    _ member: String, _ call: DBusMessage, _ object: Object
  ) throws(DBusError) -> Outcome {
    var reader = DBusReader(call.body)
    switch member {
    case "Get":
      try Self.check(call, "ss")
      let (_, property) = try property(&reader, object)
      return .reply([.variant(try property.read())])
    case "GetAll":
      try Self.check(call, "s")
      let name = try reader.next(String.self)
      // An empty name means all interfaces.
      if name.isEmpty {
        let all = object.interfaces.flatMap(\.properties)
        return .reply([Self.allProperties(of: DBusInterface("", properties: all))])
      }
      return .reply([Self.allProperties(of: try interface(name, object))])
    case "Set":
      try Self.check(call, "ssv")
      let (interface, property) = try property(&reader, object)
      let value = try reader.next(DBusVariant.self).content
      guard let set = property.set else {
        throw DBusError(
          name: DBusErrorName.propertyReadOnly, message: "property \(property.name) can only be read")
      }
      guard value.type == property.type else {
        throw DBusError(
          name: DBusErrorName.invalidArguments,
          message: "property \(property.name) has the type “\(property.type)”, not “\(value.type)”")
      }
      try set(value, call)
      return .written(interface: interface, property: property.name)
    default: throw unknown(member, DBusWellKnown.properties)
    }
  }

  private func property(
    _ reader: inout DBusReader, _ object: Object
  ) throws(DBusError) -> (interface: String, property: DBusProperty) {
    let name = try reader.next(String.self)
    let wanted = try reader.next(String.self)
    let interfaces = name.isEmpty ? object.interfaces : [try interface(name, object)]
    for interface in interfaces {
      if let property = interface.properties.first(where: { $0.name == wanted }) {
        return (interface.name, property)
      }
    }
    throw DBusError(name: DBusErrorName.unknownProperty, message: "there is no property “\(wanted)”")
  }

  private func interface(_ name: String, _ object: Object) throws(DBusError) -> DBusInterface {
    guard let interface = object.interface(name) else {
      throw DBusError(name: DBusErrorName.unknownInterface, message: "there is no interface “\(name)”")
    }
    return interface
  }

  /// All objects below (`a{oa{sa{sv}}}`), without the manager itself.
  private func managedObjects(below path: ObjectPath) -> DBusValue {
    let managed = objects.filter { $0.key != path && $0.key.isWithin(path) }.sorted { $0.key < $1.key }
    return .dictionary(
      key: .objectPath,
      value: .dictionary(key: .string, value: .dictionary(key: .string, value: .variant)),
      managed.map {
        DBusEntry(key: .objectPath($0.key), value: Self.interfacesAndProperties($0.value.interfaces))
      })
  }

  private static func check(_ call: DBusMessage, _ signature: String) throws(DBusError) {
    guard call.signature.text == signature else {
      throw DBusError(
        name: DBusErrorName.invalidArguments,
        message: "\(call.member ?? "") takes “\(signature)”, not “\(call.signature)”")
    }
  }

  private func unknown(_ member: String, _ interface: String) -> DBusError {
    DBusError(name: DBusErrorName.unknownMethod, message: "\(interface) has no method “\(member)”")
  }
}
