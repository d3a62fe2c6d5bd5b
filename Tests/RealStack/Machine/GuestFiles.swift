internal import Foundation

extension VirtualMachine {
  /// What the guest finds in memory when it starts: the scripts of this target, busybox, and what they are to do.
  func guestFiles(_ command: [String]) throws -> Data {
    guard let busybox = Command.path(of: "busybox"), let daemon = Self.daemonPath else {
      throw Failure.unsupported("busybox or bluetoothd is missing")
    }
    var archive = CPIOArchive()
    for folder in ["bin", "proc", "sys", "dev", "host", "layer", "merged", "guest"] {
      archive.addFolder(folder)
    }
    archive.addFile("init", Data(PackageResources.init_sh), executable: true)
    archive.addFile("bin/busybox", try Data(contentsOf: URL(filePath: busybox)), executable: true)
    archive.addFile("guest/session.sh", Data(PackageResources.session_sh))
    archive.addFile("guest/stack.sh", Data(PackageResources.stack_sh), executable: true)
    archive.addFile("guest/main.conf", Data(PackageResources.main_conf))
    let options = (experimental ? ["--experimental"] : []) + (verboseDaemon ? ["--debug"] : [])
    let settings = [
      "CONTROLLERS": "\(controllers)", "SNOOP": recordsTraffic ? "1" : "0", "BLUETOOTHD": daemon,
      "DAEMON_OPTIONS": options.joined(separator: " "),
    ]
    archive.addFile("guest/settings", Self.assignments(settings, prefix: ""))
    archive.addFile("guest/environment", Self.assignments(commandEnvironment, prefix: "export "))
    let seconds = max(1, timeLimit.components.seconds)
    let lines = [
      "cd \(Self.quoted(folder)) || exit 125",
      "exec /usr/bin/timeout --kill-after=5 \(seconds) \(command.map(Self.quoted).joined(separator: " "))",
    ]
    archive.addFile("guest/command", Data((lines.joined(separator: "\n") + "\n").utf8))
    return archive.finished()
  }

  private var commandEnvironment: [String: String] {
    let host = ProcessInfo.processInfo.environment
    var variables = ["HOME": "/root", "LANG": "C.UTF-8"].merging(
      host.filter { ["HOME", "LANG"].contains($0.key) }
    ) { $1 }
    // Programs of the guest first; then what the caller can run.
    variables["PATH"] = "/run/real-stack/bin:\(host["PATH"] ?? "/usr/bin:/bin"):/usr/sbin:/sbin"
    variables["USER"] = "root"
    variables["TERM"] = "dumb"
    variables[Guest.variable] = "1"
    return variables.merging(environment) { $1 }
  }

  private static func assignments(_ values: [String: String], prefix: String) -> Data {
    let lines = values.sorted { $0.key < $1.key }.map { "\(prefix)\($0.key)=\(quoted($0.value))\n" }
    return Data(lines.joined().utf8)
  }

  /// One word of the shell, whatever is in it.
  static func quoted(_ text: String) -> String {
    "'" + text.replacing("'", with: #"'\''"#) + "'"
  }
}
