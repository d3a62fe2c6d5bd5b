/// Goes through values that are to be sent and finds what libdbus or the bus would not take, before anything is written.
///
/// A message that breaks a rule would abort the process or cost the connection, so this counts octets as they will be marshalled
/// (with padding, from an offset that is a multiple of 8), and levels of nesting.
/// Source: D-Bus Specification, "Marshaling", "Message Protocol", "Valid Signatures".
struct BodyCheck {
  /// Octets of the longest array.
  static let maximumArray = 1 << 26
  /// Octets of the longest message, header and body.
  static let maximumMessage = 1 << 27
  /// Levels of arrays, structures, dictionary entries and variants inside each other, through variants.
  static let maximumDepth = 2 * DBusSignature.maximumDepth

  /// What the kernel passes at once: SCM_MAX_FD, unix(7). A bus may allow fewer.
  static let maximumDescriptors = 253

  /// Octets of the body so far.
  private(set) var octets = 0
  /// Descriptors that the body carries.
  private(set) var descriptors = 0

  /// Checks a body and returns its signature.
  mutating func add(_ body: [DBusValue]) throws(DBusError) -> DBusSignature {
    // Before any type is asked for its own: types of too deep values are not worth having.
    for value in body { try checkDepth(of: value, arrays: 0, structures: 0, total: 0) }
    let signature = try DBusSignature(body.map(\.type))
    for (value, type) in zip(body, signature.types) { try add(value, as: type) }
    return signature
  }

  private func checkDepth(
    of value: DBusValue, arrays: Int, structures: Int, total: Int
  ) throws(DBusError) {
    guard arrays <= DBusSignature.maximumDepth, structures <= DBusSignature.maximumDepth,
      total <= Self.maximumDepth
    else { throw .invalid("values are nested too deeply") }
    switch value {
    case .array(_, let elements):
      for element in elements {
        try checkDepth(of: element, arrays: arrays + 1, structures: structures, total: total + 1)
      }
    case .structure(let fields):
      for field in fields {
        try checkDepth(of: field, arrays: arrays, structures: structures + 1, total: total + 1)
      }
    case .dictionary(_, _, let entries):
      for entry in entries {
        try checkDepth(of: entry.value, arrays: arrays + 1, structures: structures + 1, total: total + 2)
      }
    case .variant(let inner):
      // A variant has a signature of its own.
      try checkDepth(of: inner, arrays: 0, structures: 0, total: total + 1)
    default: break
    }
  }

  private mutating func add(_ value: DBusValue, as type: DBusType) throws(DBusError) {
    align(to: type.alignment)
    switch (value, type) {
    case (.byte, .byte): octets += 1
    case (.int16, .int16), (.uint16, .uint16): octets += 2
    case (.boolean, .boolean), (.int32, .int32), (.uint32, .uint32): octets += 4
    case (.int64, .int64), (.uint64, .uint64), (.double, .double): octets += 8
    case (.descriptor(let descriptor), .descriptor):
      guard descriptor.raw >= 0 else { throw .invalid("the descriptor was given away") }
      descriptors += 1
      octets += 4
    case (.string(let text), .string):
      guard !text.utf8.contains(0) else { throw .invalid("a string contains a NUL") }
      octets += 4 + text.utf8.count + 1
    case (.objectPath(let path), .objectPath): octets += 4 + path.text.utf8.count + 1
    case (.signature(let signature), .signature): octets += 1 + signature.text.utf8.count + 1
    case (.variant(let inner), .variant):
      let signature = try DBusSignature([inner.type])
      octets += 1 + signature.text.utf8.count + 1
      try add(inner, as: signature.types[0])
    case (.structure(let fields), .structure(let types)):
      guard fields.count == types.count else { throw mismatch(value, type) }
      for (field, type) in zip(fields, types) { try add(field, as: type) }
    case (.bytes(let bytes), .array(of: .byte)):
      octets += 4
      try addArray(alignment: 1) { (check) throws(DBusError) in check.octets += bytes.count }
    case (.array(_, let elements), .array(of: let element)):
      guard value.type == type else { throw mismatch(value, type) }
      octets += 4
      try addArray(alignment: element.alignment) { (check) throws(DBusError) in
        for value in elements { try check.add(value, as: element) }
      }
    case (.dictionary(_, _, let entries), .dictionary(key: let keyType, value: let valueType)):
      guard value.type == type else { throw mismatch(value, type) }
      octets += 4
      try addArray(alignment: 8) { (check) throws(DBusError) in
        for entry in entries {
          check.align(to: 8)
          try check.add(entry.key, as: keyType)
          try check.add(entry.value, as: valueType)
        }
      }
    default: throw mismatch(value, type)
    }
    guard octets <= Self.maximumMessage else { throw tooLong("a message", Self.maximumMessage) }
  }

  /// The length of an array does not count the padding before its first element.
  private mutating func addArray(
    alignment: Int, _ content: (inout BodyCheck) throws(DBusError) -> Void
  ) throws(DBusError) {
    align(to: alignment)
    let start = octets
    try content(&self)
    guard octets - start <= Self.maximumArray else { throw tooLong("an array", Self.maximumArray) }
  }

  private mutating func align(to boundary: Int) { octets = (octets + boundary - 1) & ~(boundary - 1) }

  private func mismatch(_ value: DBusValue, _ type: DBusType) -> DBusError {
    .invalid("a value of type “\(value.type)” where “\(type)” is declared")
  }

  private func tooLong(_ what: String, _ limit: Int) -> DBusError {
    .invalid("\(what) of more than \(limit) octets", name: DBusErrorName.limitsExceeded)
  }
}
