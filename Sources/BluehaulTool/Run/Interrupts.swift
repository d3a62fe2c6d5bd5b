internal import Dispatch
internal import Foundation
internal import Locking

/// SIGINT, SIGTERM and SIGHUP: the first asks the running command to end in order, the second ends the process at once.
public final class Interrupts: Sendable {
  private struct State {
    var count = 0
    var handler: (@Sendable () -> Void)?
  }

  private let state = PosixMutex(State())
  private let exit: @Sendable () -> Void

  /// Makes one that is told of signals by ``raise()``; `exit` ends the process.
  public init(exit: @escaping @Sendable () -> Void) { self.exit = exit }

  /// Listens to the signals of this process, for the rest of its life.
  ///
  /// SIGHUP that is ignored when the process starts, as nohup(1) has it, stays so. SIGINT does not: shells ignore it for every command in the
  /// background of a script, and it is the signal by which a receiver there is ended.
  public static func ofProcess() -> Interrupts {
    let interrupts = Interrupts(exit: { _exit(ExitCode.interrupted.rawValue) })
    let queue = DispatchQueue(label: "bluehaul.signals")
    // A dispatch source would see an ignored signal too.
    for signal in [SIGINT, SIGTERM] + (isIgnored(SIGHUP) ? [] : [SIGHUP]) {
      let source = DispatchSource.makeSignalSource(signal: signal, queue: queue)
      // The handler holds the source: it lives as long as the process.
      source.setEventHandler {
        withExtendedLifetime(source) { interrupts.raise() }
      }
      source.resume()
    }
    return interrupts
  }

  /// SIGQUIT has its default action again, which ends the process: the runtime's handler writes a report of a crash and goes on. Who has it ignored
  /// when the process starts wants it so.
  public static func endAtOnceOnQuit() {
    if !isIgnored(SIGQUIT) { signal(SIGQUIT, SIG_DFL) }
  }

  /// Whether nothing happens where the signal comes.
  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard unsafe sigaction(signal, nil, &action) == 0 else { return true }
    return unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self) == 1
  }

  /// Sets what the first signal does; it is done at once where the signal has been already.
  func onFirst(_ handler: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      state.handler = handler
      return state.count > 0
    }
    if isLate { handler() }
  }

  /// Whether there was a signal.
  var happened: Bool { state.withLock { $0.count > 0 } }

  /// Does what a signal does.
  func raise() {
    let (count, handler) = state.withLock { state in
      state.count += 1
      return (state.count, state.handler)
    }
    if count > 1 { exit() } else { handler?() }
  }
}
