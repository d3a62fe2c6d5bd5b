internal import CLinux
internal import Dispatch
package import Foundation
internal import Locking

/// A built program as a process of its own, for what only a process shows: signals, pipes, being killed.
///
/// Started with posix_spawn(3), and read and awaited on threads of its own: Foundation's `Process` now and then misses an end when several run.
package final class ChildProcess: Sendable {
  package enum Ending: Equatable, Sendable {
    case exit(Int32)
    case signal(Int32)
  }

  package struct CannotStart: Error {
    package let errorNumber: Int32
  }

  private final class Started: Sendable {
    let result = PosixMutex<Result<pid_t, any Error>?>(nil)
    /// Its end was taken note of: the number can be another process's now.
    let isReaped = PosixMutex(false)
  }

  /// Lines of standard output as they come, without their line feeds; ends with the output.
  package let lines: AsyncStream<String>
  package let pid: Int32
  private let started = Started()
  private let endings: AsyncStream<Ending>
  private let errorText: FileHandle

  /// Executables stand beside the test bundle.
  package static let products = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent()

  /// Starts the executable of that name, or at that absolute path; with an `output`, it prints there and ``lines`` is empty.
  ///
  /// The process has descriptors of this one as its own 3, 4, ...: duplicates of `inherited`. With `endsWithParent` it is killed when
  /// this process ends, however that ends.
  package init(
    _ name: String, _ arguments: [String] = [], environment: [String: String] = [:],
    output: FileHandle? = nil,
    inherited: [Int32] = [], endsWithParent: Bool = false
  ) throws {
    let errors = FileManager.default.temporaryDirectory.appending(path: "bluehaul-\(UUID()).stderr")
    try Data().write(to: errors)
    errorText = try FileHandle(forUpdating: errors)
    try FileManager.default.removeItem(at: errors)
    let (reader, writer) = try output.map { (nil, $0.fileDescriptor) } ?? Self.makePipe()
    let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    defer { if output == nil { close(writer) } }
    let (endings, ending) = AsyncStream.makeStream(of: Ending.self)
    self.endings = endings
    var command = [name.hasPrefix("/") ? name : Self.products.appending(path: name).path] + arguments
    if endsWithParent { command = ["/usr/bin/setpriv", "--pdeathsig", "KILL"] + command }
    pid = try Self.start(started, ending) { [command, errors = errorText.fileDescriptor] in
      try Self.spawn(
        command, variables.map { "\($0)=\($1)" }, output: writer, errors: errors, inherited: inherited)
    }

    let (lines, line) = AsyncStream.makeStream(of: String.self)
    self.lines = lines
    if let reader {
      Thread.detachNewThread {
        Self.read(reader) { line.yield($0) }
        line.finish()
      }
    } else {
      line.finish()
    }
  }

  /// Does nothing once the process has ended.
  package func send(signal: Int32) {
    started.isReaped.withLock { isReaped in if !isReaped { kill(pid, signal) } }
  }

  /// Waits for the end of the process; it is told once, and nil afterwards.
  package func ending() async -> Ending? {
    for await ending in endings { return ending }
    return nil
  }

  /// What was written to standard error, after the end.
  package func errors() -> String {
    try? errorText.seek(toOffset: 0)
    let data = try? errorText.readToEnd()
    return String(decoding: data.flatMap { $0 } ?? Data(), as: UTF8.self)
  }

  /// The first line that `matches`, after the lines before it were read; nil where the output has ended.
  package func line(where matches: (String) -> Bool) async -> String? {
    for await line in lines where matches(line) { return line }
    return nil
  }

  /// The rest of the output.
  package func allLines() async -> [String] {
    var all: [String] = []
    for await line in lines { all.append(line) }
    return all
  }

  private static func makePipe() throws -> (reader: Int32?, writer: Int32) {
    var ends: [Int32] = [-1, -1]
    // A pair of sockets can be closed at exec from the start; other tests start processes at the same time.
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw CannotStart(errorNumber: errno) }
    return (ends[0], ends[1])
  }

  /// The thread that starts a process also waits for its end: what ends with its parent ends with the thread that started it, see prctl(2).
  private static func start(
    _ shared: Started, _ ending: AsyncStream<Ending>.Continuation,
    _ spawn: @escaping @Sendable () throws -> pid_t
  ) throws -> pid_t {
    let event = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      let result = Result { try spawn() }
      shared.result.withLock { $0 = result }
      event.signal()
      guard case .success(let pid) = result else { return ending.finish() }
      var information = unsafe siginfo_t()
      while unsafe waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
      var status: Int32 = 0
      shared.isReaped.withLock { isReaped in
        _ = unsafe waitpid(pid, &status, 0)
        isReaped = true
      }
      ending.yield(status & 0x7F == 0 ? .exit(status >> 8 & 0xFF) : .signal(status & 0x7F))
      ending.finish()
    }
    event.wait()
    guard let result = shared.result.withLock({ $0 }) else { throw CannotStart(errorNumber: ECHILD) }
    return try result.get()
  }

  /// Signals have their default actions in the child, whatever the tests were started with.
  private static func spawn(
    _ command: [String], _ variables: [String], output: Int32, errors: Int32, inherited: [Int32]
  ) throws -> pid_t {
    // Above all numbers that they are given, so that none is overwritten before it is duplicated.
    let high = try inherited.map { descriptor in
      let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 64)
      guard copy >= 0 else { throw CannotStart(errorNumber: errno) }
      return copy
    }
    defer { high.forEach { close($0) } }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    unsafe posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
    for (index, descriptor) in high.enumerated() {
      unsafe posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(3 + index))
    }
    // A socket of another test that lived on in this process would not end for its peer.
    _ = unsafe clinux_spawn_close_from(&actions, Int32(3 + high.count))
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    unsafe sigemptyset(&none)
    var defaults = sigset_t()
    unsafe sigemptyset(&defaults)
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] { unsafe sigaddset(&defaults, signal) }
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &defaults)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
    var argv = unsafe command.map { unsafe strdup($0) } + [nil]
    var envp = unsafe variables.map { unsafe strdup($0) } + [nil]
    defer { unsafe (argv + envp).forEach { unsafe free($0) } }
    var pid: pid_t = 0
    let result = unsafe posix_spawn(&pid, command[0], &actions, &attributes, &argv, &envp)
    guard result == 0 else { throw CannotStart(errorNumber: result) }
    return pid
  }

  /// Reads until the end and closes the descriptor.
  private static func read(_ descriptor: Int32, line: (String) -> Void) {
    var rest: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      if count <= 0 { break }
      rest += buffer.prefix(count)
      while let end = rest.firstIndex(of: 0x0A) {
        line(String(decoding: rest[..<end], as: UTF8.self))
        rest.removeSubrange(...end)
      }
    }
    close(descriptor)
  }
}
