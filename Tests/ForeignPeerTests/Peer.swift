import ChildProcess
import Foundation
import RealStack

extension ChildProcess {
  /// Starts a program of `Peers`, which ends with this process at the latest.
  convenience init(peer program: String, _ software: ForeignSoftware, _ arguments: [String]) throws {
    let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Peers/\(program)").path
    try self.init(
      software.python, [path] + arguments, environment: ["PYTHONDONTWRITEBYTECODE": "1"], endsWithParent: true
    )
  }
}
