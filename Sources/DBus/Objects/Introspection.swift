/// What an object says of itself. Source: D-Bus Specification, "Introspection Data Format".
enum Introspection {
  static func xml(of object: ObjectTree.Object, children: [String]) -> String {
    var text = """
      <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
       "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
      <node>

      """
    for interface in object.interfaces + standard(object) { write(interface, to: &text) }
    for child in children { text += "  <node name=\"\(child)\"/>\n" }
    return text + "</node>\n"
  }

  /// Interfaces that are there by themselves: only described here, answered by the tree.
  private static func standard(_ object: ObjectTree.Object) -> [DBusInterface] {
    func method(_ name: String, in inputs: [DBusArgument] = [], out outputs: [DBusArgument] = [])
      -> DBusMethod
    {
      DBusMethod(name, in: inputs, out: outputs) { _ in }
    }
    let interface = DBusArgument("interface_name", .string)
    let property = DBusArgument("property_name", .string)
    let all = DBusArgument("properties", .dictionary(key: .string, value: .variant))
    var interfaces = [
      DBusInterface(
        DBusWellKnown.introspectable,
        methods: [method("Introspect", out: [DBusArgument("xml_data", .string)])]),
      DBusInterface(
        DBusWellKnown.peer,
        methods: [method("Ping"), method("GetMachineId", out: [DBusArgument("machine_uuid", .string)])]),
      DBusInterface(
        DBusWellKnown.properties,
        methods: [
          method("Get", in: [interface, property], out: [DBusArgument("value", .variant)]),
          method("GetAll", in: [interface], out: [all]),
          method("Set", in: [interface, property, DBusArgument("value", .variant)]),
        ],
        signals: [
          DBusSignal(
            "PropertiesChanged",
            [interface, all, DBusArgument("invalidated_properties", .array(of: .string))])
        ]),
    ]
    if object.isManager {
      let path = DBusArgument("object_path", .objectPath)
      let added = DBusType.dictionary(key: .string, value: all.type)
      interfaces.append(
        DBusInterface(
          DBusWellKnown.objectManager,
          methods: [
            method(
              "GetManagedObjects",
              out: [DBusArgument("objects", .dictionary(key: .objectPath, value: added))])
          ],
          signals: [
            DBusSignal("InterfacesAdded", [path, DBusArgument("interfaces_and_properties", added)]),
            DBusSignal("InterfacesRemoved", [path, DBusArgument("interfaces", .array(of: .string))]),
          ]))
    }
    return interfaces
  }

  private static func write(_ interface: DBusInterface, to text: inout String) {
    text += "  <interface name=\"\(interface.name)\">\n"
    for method in interface.methods {
      let arguments = lines(method.inputs, " direction=\"in\"") + lines(method.outputs, " direction=\"out\"")
      element("method", "name=\"\(method.name)\"", arguments, to: &text)
    }
    for signal in interface.signals {
      element("signal", "name=\"\(signal.name)\"", lines(signal.arguments, ""), to: &text)
    }
    for property in interface.properties {
      let changes =
        property.changes == .value
        ? []
        : [
          "<annotation name=\"org.freedesktop.DBus.Property.EmitsChangedSignal\" value=\"\(property.changes.rawValue)\"/>"
        ]
      let attributes = "name=\"\(property.name)\" type=\"\(property.type)\" access=\"\(property.access)\""
      element("property", attributes, changes, to: &text)
    }
    text += "  </interface>\n"
  }

  private static func lines(_ arguments: [DBusArgument], _ direction: String) -> [String] {
    arguments.map { argument in
      let name = argument.name.isEmpty ? "" : " name=\"\(escaped(argument.name))\""
      return "<arg\(name) type=\"\(argument.type)\"\(direction)/>"
    }
  }

  private static func element(_ name: String, _ attributes: String, _ lines: [String], to text: inout String)
  {
    guard !lines.isEmpty else {
      text += "    <\(name) \(attributes)/>\n"
      return
    }
    text += "    <\(name) \(attributes)>\n"
    for line in lines { text += "      \(line)\n" }
    text += "    </\(name)>\n"
  }

  /// Names of arguments are free text; all other names have no special characters.
  static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      // XML 1.0 has no way to write other control characters, and D-Bus none for NUL.
      case "\t", "\n", "\r": result += "&#\(scalar.value);"
      case _ where scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF:
        result += "\u{FFFD}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
