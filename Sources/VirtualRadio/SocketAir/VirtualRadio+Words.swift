internal import Foundation
internal import Radio

extension VirtualRadio {
  /// What words for a virtual radio begin with.
  public static let wordsPrefix = "virtual:"

  /// Makes the radio that words name: `virtual:DIR`, with settings behind a question mark if need be, such as
  /// `virtual:DIR?name=bench-1&clock=unpaced`.
  ///
  /// | setting | value |
  /// |---|---|
  /// | `name` | the adapter's name; else that of the program |
  /// | `clock` | `real` (as it is without) or `unpaced` |
  /// | `link` | what ``LinkParameters/init(parsing:)`` reads |
  /// | `fault` | what ``FaultPlan/init(parsing:)`` reads |
  /// | `seed` | a number |
  /// | `permission` | `allowed` (as it is without), `denied` or `restricted`: whether this process may use the radio |
  ///
  /// Throws a ``SettingError`` or a ``VirtualAirError``.
  public convenience init(words: String) throws {
    let words = words.hasPrefix(Self.wordsPrefix) ? String(words.dropFirst(Self.wordsPrefix.count)) : words
    let parts = words.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    var name = ProcessInfo.processInfo.processName
    var mode = VirtualClock.Mode.realTime
    var link = LinkParameters()
    var faults = FaultPlan()
    var seed: UInt64 = 1
    var authorization = RadioAuthorization.allowed
    for item in parts.count > 1 ? parts[1].split(separator: "&", omittingEmptySubsequences: false) : [] {
      let setting = try Setting(item, keys: ["name", "clock", "link", "fault", "seed", "permission"])
      switch setting.key {
      case "name": name = setting.value
      case "clock" where setting.isWord("real"): mode = .realTime
      case "clock" where setting.isWord("unpaced"): mode = .unpaced
      case "clock": throw setting.error("must be real or unpaced")
      case "link": link = try LinkParameters(parsing: setting.value)
      case "fault": faults = try FaultPlan(parsing: setting.value)
      case "seed":
        guard let number = UInt64(setting.value) else { throw setting.error("is not a whole number") }
        seed = number
      case "permission" where setting.isWord("allowed"): authorization = .allowed
      case "permission" where setting.isWord("denied"): authorization = .denied
      case "permission" where setting.isWord("restricted"): authorization = .restricted
      case "permission": throw setting.error("must be allowed, denied or restricted")
      default: throw setting.error("is not handled")
      }
    }
    try self.init(
      directory: parts[0], name: name, clock: VirtualClock(mode), link: link, seed: seed, faults: faults)
    if authorization != .allowed { setAuthorization(authorization) }
  }
}
