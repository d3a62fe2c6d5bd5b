internal import Foundation

/// The virtual machine as seen from inside, for tests that run there.
package enum Guest {
  static let variable = "BLUEHAUL_REAL_STACK"

  /// Whether this process runs in the virtual machine.
  package static let isHere = ProcessInfo.processInfo.environment[variable] == "1"

  /// For the condition of suites that run nowhere else.
  package static let elsewhere = "runs inside the virtual machine: see Tests/RealStack/README.md"
}
