internal import Dispatch
internal import Foundation

/// What a small program of the system prints.
///
/// Started with posix_spawn(3): Foundation's `Process` ends this process where no descriptor is left.
enum ProgramOutput {
  /// timeout(1), which ends a program that takes too long.
  private static let limiter = "/usr/bin/timeout"

  /// The first line that a program prints within five seconds; nil where it is not there, fails, takes longer or cannot be started.
  static func firstLine(of path: String, _ arguments: [String]) async -> String? {
    guard FileManager.default.isExecutableFile(atPath: path) else { return nil }
    return await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(returning: run([limiter, "--kill-after=1", "5", path] + arguments))
      }
    }
  }

  private static func run(_ command: [String]) -> String? {
    var ends: [Int32] = [-1, -1]
    // A pair of sockets, other than a pipe, is closed at exec from the start.
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
    let process = start(command, output: ends[1])
    close(ends[1])
    defer { close(ends[0]) }
    guard let process else { return nil }
    // A version is short; whatever else it says is of no interest.
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while bytes.count < 4096 {
      let count = unsafe read(ends[0], &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      bytes += buffer.prefix(count)
    }
    var status: Int32 = 0
    var waited: pid_t
    repeat { waited = unsafe waitpid(process, &status, 0) } while waited < 0 && errno == EINTR
    guard waited == process, status == 0 else { return nil }
    return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first.map(String.init)
  }

  private static func start(_ command: [String], output: Int32) -> pid_t? {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    // What this process ignores, a program that it starts would ignore, too.
    var none = sigset_t()
    unsafe sigemptyset(&none)
    var defaults = sigset_t()
    unsafe sigemptyset(&defaults)
    unsafe sigaddset(&defaults, SIGPIPE)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &defaults)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
    var words = unsafe command.map { unsafe strdup($0) } + [nil]
    var variables =
      unsafe ProcessInfo.processInfo.environment.map { unsafe strdup("\($0)=\($1)") } + [nil]
    defer { unsafe (words + variables).forEach { unsafe free($0) } }
    var process: pid_t = 0
    guard unsafe posix_spawn(&process, command[0], &actions, &attributes, &words, &variables) == 0 else {
      return nil
    }
    return process
  }
}
