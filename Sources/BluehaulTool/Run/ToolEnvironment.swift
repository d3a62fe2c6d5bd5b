internal import BlueZRadio
internal import Foundation
internal import Radio

/// What surrounds a run of the tool. A test gives its own.
public struct ToolEnvironment: Sendable {
  /// Environment variables.
  public var variables: [String: String]
  public var output: any OutputSink
  public var errors: any OutputSink
  /// The width of the terminal that output goes to, asked anew each time; nil where it is none, or one that cannot redraw a line.
  public var terminalColumns: (@Sendable () -> Int)?
  /// Monotonic time of the machine, for how often something is printed.
  public var now: @Sendable () -> Duration

  /// Makes the radio of a sender; a test gives a simulated one.
  var radio: @Sendable (RadioRequest) async throws -> any Radio = { try await $0.make() }
  /// Makes the radio of a device.
  var deviceRadio: @Sendable (RadioRequest) async throws -> any Radio = { try await $0.makeDevice() }

  /// Looks at this host's Bluetooth; a test gives findings.
  var examine: @Sendable (_ adapter: String?) async -> [Finding] = { await BlueZRadio.examine(adapter: $0) }

  /// Makes an environment.
  public init(
    variables: [String: String], output: any OutputSink, errors: any OutputSink,
    terminalColumns: (@Sendable () -> Int)?, now: @escaping @Sendable () -> Duration
  ) {
    self.variables = variables
    self.output = output
    self.errors = errors
    self.terminalColumns = terminalColumns
    self.now = now
  }

  /// The environment of this process.
  public static func process() -> Self {
    let start = ContinuousClock.now
    let variables = ProcessInfo.processInfo.environment
    let canRedraw = isatty(STDOUT_FILENO) == 1 && variables["TERM", default: "dumb"] != "dumb"
    var environment = Self(
      variables: variables, output: DescriptorSink(descriptor: STDOUT_FILENO),
      errors: DescriptorSink(descriptor: STDERR_FILENO), terminalColumns: nil,
      now: { ContinuousClock.now - start })
    if canRedraw { environment.terminalColumns = { columns(of: STDOUT_FILENO) ?? 80 } }
    return environment
  }

  /// The width for help texts.
  var helpColumns: Int { terminalColumns?() ?? variables["COLUMNS"].flatMap { Int($0) } ?? 80 }

  /// Asks the terminal (ioctl_tty(2), TIOCGWINSZ).
  private static func columns(of descriptor: Int32) -> Int? {
    var size = winsize()
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }
}
