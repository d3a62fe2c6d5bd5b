/// One interface of an exported object: what introspection shows, and what it does.
///
/// Source: D-Bus Specification, "Introspection Data Format".
public struct DBusInterface: Sendable {
  public let name: String
  public var methods: [DBusMethod]
  public var properties: [DBusProperty]
  public var signals: [DBusSignal]

  public init(
    _ name: String, methods: [DBusMethod] = [], properties: [DBusProperty] = [], signals: [DBusSignal] = []
  ) {
    self.name = name
    self.methods = methods
    self.properties = properties
    self.signals = signals
  }

  /// Throws with kind ``DBusError/Kind/invalidArgument`` where a name or a type is not allowed, or a member is there twice.
  func check() throws(DBusError) {
    try DBusName.check(name, as: .interface)
    let standard = [
      DBusWellKnown.properties, DBusWellKnown.introspectable, DBusWellKnown.objectManager, DBusWellKnown.peer,
      DBusWellKnown.local,
    ]
    guard !standard.contains(name) else { throw .invalid("\(name) is there by itself") }
    let arguments = methods.flatMap { $0.inputs + $0.outputs } + signals.flatMap(\.arguments)
    for type in arguments.map(\.type) + properties.map(\.type) { _ = try DBusSignature([type]) }
    for members in [methods.map(\.name), properties.map(\.name), signals.map(\.name)] {
      for member in members { try DBusName.check(member, as: .member) }
      guard Set(members).count == members.count else { throw .invalid("\(name) has a member twice") }
    }
  }
}

/// An argument of a method or a signal.
public struct DBusArgument: Hashable, Sendable {
  /// For people; empty for none.
  public let name: String
  public let type: DBusType

  public init(_ name: String, _ type: DBusType) {
    self.name = name
    self.type = type
  }
}

/// A signal that an interface declares.
public struct DBusSignal: Hashable, Sendable {
  public let name: String
  public let arguments: [DBusArgument]

  public init(_ name: String, _ arguments: [DBusArgument] = []) {
    self.name = name
    self.arguments = arguments
  }
}

/// A method of an exported object.
public struct DBusMethod: Sendable {
  public let name: String
  public let inputs: [DBusArgument]
  public let outputs: [DBusArgument]
  /// The signature that a call has to have.
  let inputText: String
  let handler: @Sendable (DBusInvocation) -> Void

  /// A method whose handler runs on the connection's queue and answers then or later, from any thread.
  ///
  /// Arguments have the declared types: other calls are answered with an error and do not come here.
  public init(
    _ name: String, in inputs: [DBusArgument] = [], out outputs: [DBusArgument] = [],
    handler: @escaping @Sendable (DBusInvocation) -> Void
  ) {
    self.name = name
    self.inputs = inputs
    self.outputs = outputs
    inputText = inputs.map(\.type.description).joined()
    self.handler = handler
  }

  /// A method that answers with what `body` returns in a task of its own: calls may overtake each other.
  ///
  /// A ``DBusError`` that it throws becomes the error reply; others become ``DBusErrorName/failed``.
  public static func asynchronous(
    _ name: String, in inputs: [DBusArgument] = [], out outputs: [DBusArgument] = [],
    body: @escaping @Sendable (DBusMessage) async throws -> [DBusValue]
  ) -> DBusMethod {
    DBusMethod(name, in: inputs, out: outputs) { invocation in
      Task {
        do { try invocation.reply(try await body(invocation.message)) } catch {
          invocation.fail(
            error as? DBusError ?? DBusError(name: DBusErrorName.failed, message: "\(error)"))
        }
      }
    }
  }
}

/// A property of an exported object.
public struct DBusProperty: Sendable {
  /// What `PropertiesChanged` says of it, in the words of the annotation `EmitsChangedSignal`.
  public enum Changes: String, Hashable, Sendable {
    /// The new value.
    case value = "true"
    /// That the old value holds no longer.
    case invalidates
    /// It never changes.
    case constant = "const"
    /// Nothing.
    case silent = "false"
  }

  public typealias Getter = @Sendable () throws(DBusError) -> DBusValue
  public typealias Setter = @Sendable (DBusValue, _ caller: DBusMessage) throws(DBusError) -> Void

  public let name: String
  public let type: DBusType
  public let changes: Changes
  let get: Getter?
  let set: Setter?

  /// A property with what reads it, or writes it, or both, on the connection's queue.
  ///
  /// `set` gets a value of the declared type. After it has returned, the change is announced as ``Changes`` says.
  public init(
    _ name: String, _ type: DBusType, changes: Changes = .value, get: Getter?, set: Setter? = nil
  ) {
    self.name = name
    self.type = type
    self.changes = changes
    self.get = get
    self.set = set
  }

  var access: String {
    if get == nil { return "write" }
    return set == nil ? "read" : "readwrite"
  }

  /// The value; throws where there is none, or it has not the declared type.
  func read() throws(DBusError) -> DBusValue {
    guard let get else {
      throw DBusError(name: DBusErrorName.accessDenied, message: "property \(name) can only be written")
    }
    let value = try get()
    guard value.type == type else {
      throw DBusError(name: DBusErrorName.failed, message: "property \(name) has a value of another type")
    }
    // A getter's value goes into messages together with others: one that cannot be sent would spoil them all.
    var check = BodyCheck()
    _ = try check.add([.variant(value)])
    return value
  }
}
