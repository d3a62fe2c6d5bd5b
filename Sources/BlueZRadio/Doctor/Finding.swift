/// One thing that was looked at on this host, what was found, and how to mend it.
public struct Finding: Hashable, Sendable {
  /// How bad it is.
  public enum Level: String, Hashable, Sendable {
    /// As it should be.
    case good
    /// It works, with a limit that a user may meet.
    case note
    /// No Bluetooth before this is mended.
    case problem
  }

  /// What was looked at, in one or two words.
  public let check: String
  public let level: Level
  /// What was found, one sentence without a full stop.
  public let message: String
  /// What to do, one sentence without a full stop; nil where nothing has to be done.
  public let advice: String?

  /// Makes a finding.
  public init(_ check: String, _ level: Level, _ message: String, advice: String? = nil) {
    self.check = check
    self.level = level
    self.message = message
    self.advice = advice
  }
}
