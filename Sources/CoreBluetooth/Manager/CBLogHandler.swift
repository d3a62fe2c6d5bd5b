internal import Foundation

/// Where one line goes each time a program misuses the API or asks for something that is not there.
///
/// Not in Apple's framework. Give one with ``CBManagerOptionLogHandlerKey``; without it lines go to standard error.
public struct CBLogHandler: Sendable {
  private let write: @Sendable (String) -> Void

  /// Makes a handler that calls `write` with each line, without a line break, from any thread and with no lock held that
  /// the API needs.
  public init(_ write: @escaping @Sendable (String) -> Void) { self.write = write }

  /// Writes to standard error.
  public static let standardError = CBLogHandler { line in
    // The form without `try` traps where standard error is closed or its disk is full; a line of the log is not worth a program.
    try? FileHandle.standardError.write(contentsOf: Data("CoreBluetooth: \(line)\n".utf8))
  }

  /// A command that was dropped because of how it was given.
  func misuse(_ object: AnyObject, _ words: String) { write("API MISUSE: \(Self.name(of: object)) \(words)") }

  /// Something that the program should know and that changes nothing for it.
  func note(_ words: String) { write(words) }

  private static func name(of object: AnyObject) -> String {
    "<\(type(of: object)): 0x\(String(UInt(bitPattern: ObjectIdentifier(object)), radix: 16))>"
  }
}
