internal import Foundation

/// The tests of this package, as they were built.
package struct GuestTestBundle: Sendable {
  package let path: String

  /// The bundle beside the running program.
  package init() {
    path =
      URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
      .appending(path: "bluehaulPackageTests.xctest").path
  }

  /// Runs the tests whose names match one of the regular expressions, one after the other, since all of them share the adapters; with `events`,
  /// records there what happens.
  package func command(filters: [String], events: String? = nil) -> [String] {
    [path, "--testing-library", "swift-testing", "--no-parallel"] + filters.flatMap { ["--filter", $0] }
      + (events.map { ["--event-stream-version", "0", "--event-stream-output-path", $0] } ?? [])
  }
}
