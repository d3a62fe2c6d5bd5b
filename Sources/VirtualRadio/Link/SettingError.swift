/// Why words do not describe a link, a fault or another setting: which key, which value, and what would do.
public struct SettingError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The word before the value, or the whole item where there is none.
  public var key: String
  /// The value that was given; nil where the key itself is wrong.
  public var value: String?
  /// What is wrong and what is accepted, for a person.
  public var problem: String

  /// Makes an error.
  public init(key: String, value: String?, problem: String) {
    self.key = key
    self.value = value
    self.problem = problem
  }

  public var description: String {
    if let value { "\(key)=\(value): \(problem)" } else { "\(key): \(problem)" }
  }
}
