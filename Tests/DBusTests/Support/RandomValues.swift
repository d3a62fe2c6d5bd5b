import DBus

/// SplitMix64: the same values for the same seed everywhere.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

/// Random types and values of them, without descriptors.
struct RandomValues {
  private var generator: SeededGenerator
  private static let basics: [DBusType] = [
    .byte, .boolean, .int16, .uint16, .int32, .uint32, .int64, .uint64, .double, .string, .objectPath,
    .signature,
  ]
  private static let words = ["", "a", "Grüße", "日本語", "🜂 feuer", "tab\tline\n", "x y z", "\u{FFFF}"]

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }

  mutating func basicType() -> DBusType { Self.basics[below(Self.basics.count)] }

  mutating func type(depth: Int) -> DBusType {
    guard depth > 0 else { return basicType() }
    switch below(7) {
    case 0: return .array(of: type(depth: depth - 1))
    case 1:
      let count = below(3) + 1
      var fields: [DBusType] = []
      for _ in 0..<count { fields.append(type(depth: depth - 1)) }
      return .structure(fields)
    case 2: return .dictionary(key: basicType(), value: type(depth: depth - 1))
    case 3: return .variant
    default: return basicType()
    }
  }

  private mutating func integer<Value: FixedWidthInteger>() -> Value {
    switch below(4) {
    case 0: .min
    case 1: .max
    default: .random(in: .min ... .max, using: &generator)
    }
  }

  mutating func value(of type: DBusType, depth: Int) -> DBusValue {
    switch type {
    case .byte: return .byte(integer())
    case .boolean: return .boolean(below(2) == 1)
    case .int16: return .int16(integer())
    case .uint16: return .uint16(integer())
    case .int32: return .int32(integer())
    case .uint32: return .uint32(integer())
    case .int64: return .int64(integer())
    case .uint64: return .uint64(integer())
    case .double: return .double(.random(in: -1e300...1e300, using: &generator))
    case .string, .descriptor: return .string(Self.words[below(Self.words.count)])
    case .objectPath: return .objectPath([.root, "/a", "/org/example/Object_1"][below(3)])
    case .signature:
      return .signature((try? DBusSignature([self.type(depth: 2), self.type(depth: 1)])) ?? .empty)
    case .variant: return .variant(value(of: self.type(depth: depth - 1), depth: depth - 1))
    case .structure(let fields): return .structure(fields.map { value(of: $0, depth: depth - 1) })
    case .array(of: .byte): return .bytes((0..<below(40)).map { _ in integer() })
    case .array(let element):
      return .array(of: element, (0..<below(4)).map { _ in value(of: element, depth: depth - 1) })
    case .dictionary(let key, let value):
      return .dictionary(
        key: key, value: value,
        (0..<below(4)).map { _ in
          DBusEntry(
            key: self.value(of: key, depth: 0), value: self.value(of: value, depth: depth - 1))
        })
    }
  }

  mutating func body() -> [DBusValue] {
    (0..<below(5)).map { _ in value(of: type(depth: 4), depth: 4) }
  }
}
