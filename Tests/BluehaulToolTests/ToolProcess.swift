import ChildProcess
import Foundation

/// The built tool as a process of its own.
typealias ToolProcess = ChildProcess

extension ChildProcess {
  /// Starts the tool; with an `output`, it prints there and ``lines`` is empty.
  convenience init(
    _ arguments: [String], environment: [String: String] = [:], output: FileHandle? = nil
  ) throws {
    try self.init("bluehaul", arguments, environment: environment, output: output)
  }
}
