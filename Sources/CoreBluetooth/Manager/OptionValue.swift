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

  /// A list of UUIDs.
  static func uuids(_ value: Any?) -> [CBUUID] { value as? [CBUUID] ?? [] }
}
