internal import Foundation

/// Reads values of option dictionaries, which hold Swift and Foundation types alike.
enum OptionValue {
  /// A Boolean, given as such or as a number.
  static func bool(_ value: Any?) -> Bool {
    switch value {
    case let value as Bool: value
    case let value as NSNumber: value.boolValue
    case let value as Int: value != 0
    default: false
    }
  }

  /// A time in seconds, given as any number; zero where it is none or not a time. At most what a timer can count.
  static func seconds(_ value: Any?) -> Duration {
    let seconds: Double =
      switch value {
      case let value as Double: value
      case let value as Int: Double(value)
      case let value as NSNumber: value.doubleValue
      default: 0
      }
    return .seconds(seconds > 0 ? min(seconds, 1e9) : 0)
  }

  /// A finite number, or a Boolean as one; nil: it is neither.
  static func number(_ value: Any) -> Double? {
    let number: Double? =
      switch value {
      case let value as Bool: value ? 1 : 0
      case let value as Double: value
      case let value as Int: Double(value)
      case let value as NSNumber: value.doubleValue
      default: nil
      }
    return number?.isFinite == true ? number : nil
  }

  /// A list of UUIDs.
  static func uuids(_ value: Any?) -> [CBUUID] { value as? [CBUUID] ?? [] }
}
