/// What the tool ends with; the one table from which `help exit-codes` is written.
public struct ExitCode: RawRepresentable, Hashable, Sendable {
  public let rawValue: Int32
  public init(rawValue: Int32) { self.rawValue = rawValue }

  public static let success = Self(rawValue: 0)
  public static let internalError = Self(rawValue: 1)
  public static let usage = Self(rawValue: 2)
  public static let badFile = Self(rawValue: 3)
  public static let notFound = Self(rawValue: 4)
  public static let refused = Self(rawValue: 5)
  public static let verificationFailed = Self(rawValue: 6)
  public static let linkLost = Self(rawValue: 7)
  public static let locked = Self(rawValue: 8)
  public static let localStorage = Self(rawValue: 9)
  public static let interrupted = Self(rawValue: 130)

  /// Every code with its meaning.
  static let table: [(code: ExitCode, meaning: String)] = [
    (.success, "Done. For a transfer: the receiver has verified every byte."),
    (.internalError, "A fault of this program."),
    (
      .usage,
      "The command line is wrong, or does not say which of several devices is meant; nothing was done."
    ),
    (
      .badFile,
      "A file cannot be used: missing, unreadable, of the wrong kind, malformed, or changed meanwhile."
    ),
    (.notFound, "The device was not found, or there is no usable radio."),
    (
      .refused,
      "The device has refused, also where another file has taken the name meanwhile, or cannot store it, or does not speak a protocol that this program knows."
    ),
    (.verificationFailed, "What the receiver holds is not what was sent."),
    (.linkLost, "The link was lost or nothing was confirmed in time. The transfer can be resumed."),
    (
      .locked,
      "Another run works on the same transfer or with the same device, or has the name or the folder of a receiver."
    ),
    (
      .localStorage,
      "A local disk is full or failing, stored state is damaged, or this process may open too few files."
    ),
    (.interrupted, "Interrupted by Ctrl-C, SIGTERM or SIGHUP. A transfer that had begun can be resumed."),
  ]
}
