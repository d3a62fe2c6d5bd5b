/// One thing to tell that is not progress: as lines for people, and as members of a JSON object.
struct Report: Hashable, Sendable {
  /// When it is told.
  enum Level: Hashable, Sendable {
    /// What the command was asked for; told even with `--quiet`.
    case result
    /// What happens; not told with `--quiet`.
    case note
    /// What helps to find a fault; told with `--verbose`, and always in JSON.
    case detail
    /// What the user should know although all goes on; goes to standard error as text.
    case warning
  }

  /// The value of `event` in JSON.
  let event: String
  let level: Level
  /// For people, without control characters in them.
  let lines: [String]
  let members: [JSONValue.Member]

  init(_ event: String, _ level: Level, _ lines: [String], _ members: [JSONValue.Member]) {
    self.event = event
    self.level = level
    self.lines = lines
    self.members = members
  }
}
