internal import Foundation
internal import Locking
internal import Radio

/// Keeps the saved state of one manager on the disk; see docs/restoration.md.
///
/// A core marks changes where they are made, on any thread and with its lock held, and lets them be written where that may take time: on the manager's
/// queue, without its lock.
final class RestorationRecorder<Contents: SavedContents>: Sendable {
  /// What the file contains.
  private enum OnDisk {
    /// Not known: a file that is of no use, or a write that has failed.
    case unknown
    case nothing
    case contents(Contents)
  }

  private struct State {
    var isMarked = false
    var onDisk = OnDisk.unknown
    /// Whether the log was told of a failure, since a write last succeeded.
    var hasToldFailure = false
    var later: ScheduledWork?
    var isClosed = false
  }

  let identifier: String
  private let store: any StateStore
  private let log: CBLogHandler
  private let state = PosixMutex(State())
  /// Held while the file is written, so that what is newer is written later. Taken before the lock of the core.
  private let writing = PosixMutex(())

  init(identifier: String, store: any StateStore, log: CBLogHandler) {
    self.identifier = identifier
    self.store = store
    self.log = log
  }

  /// The recorder for the options of a manager; nil: it has no identifier, or, with a line in the log, none that can be used.
  static func make(_ options: [String: Any]?, log: CBLogHandler) -> RestorationRecorder? {
    let key = Contents.identifierKey
    guard let value = options?[key] else { return nil }
    guard let identifier = value as? String, !identifier.isEmpty else {
      log.note("API MISUSE: \(key) takes a String that is not empty; the manager restores and saves nothing.")
      return nil
    }
    do {
      let location = try StateLocation(
        role: Contents.role, identifier: identifier, directory: options?[CBManagerOptionStateDirectoryKey],
        program: ProcessInfo.processInfo.processName, variables: ProcessInfo.processInfo.environment)
      let file = try StateFile(folder: location.folder, name: location.name)
      return RestorationRecorder(identifier: identifier, store: file, log: log)
    } catch let error as StateFileError where error.code == .inUse {
      log.note(
        "The restore identifier \"\(identifier)\" is in use by \(error); this manager restores and saves nothing."
      )
    } catch let error as StateLocation.Absence {
      log.note("There is no place for saved state: \(error.words); the manager restores and saves nothing.")
    } catch {
      log.note("State cannot be saved: \(error); the manager restores and saves nothing.")
    }
    return nil
  }

  /// What a former run has saved; nil, perhaps with a line in the log: nothing.
  func load() -> Contents? {
    do {
      guard let octets = try store.read(limit: SavedStateHeader.limit) else {
        state.withLock { $0.onDisk = .nothing }
        return nil
      }
      let contents = try SavedState<Contents>.decode(octets, identifier: identifier)
      state.withLock { $0.onDisk = .contents(contents) }
      return contents.isEmpty ? nil : contents
    } catch let error as StateFileError {
      log.note("Saved state cannot be read and is not restored: \(error).")
    } catch let error as SavedStateError {
      log.note("Saved state is not restored from \(store.path): \(error).")
    } catch {
      log.note("Saved state is not restored from \(store.path): it is damaged.")
    }
    return nil
  }

  /// Notes that what is saved has changed; true: the caller sees to it that it is written.
  func mark() -> Bool {
    state.withLock { state in
      defer { state.isMarked = true }
      return !state.isMarked && !state.isClosed
    }
  }

  /// How long changes that a peer has caused may wait.
  static var patience: Duration { .seconds(2) }

  /// Lets `write` be called after a while, once for all that happens until then.
  func markLater(_ clock: any RadioClock, _ write: @escaping @Sendable () -> Void) {
    let mustSchedule = state.withLock { state in
      guard !state.isClosed, state.later == nil else { return false }
      // Stands in until the clock has given the real one, which it may do after the time.
      state.later = ScheduledWork {}
      return true
    }
    guard mustSchedule else { return }
    let work = clock.schedule(after: Self.patience) { [weak self] in
      self?.state.withLock { $0.later = nil }
      write()
    }
    let isUnused = state.withLock { state in
      guard state.later != nil, !state.isClosed else { return true }
      state.later = work
      return false
    }
    if isUnused { work.cancel() }
  }

  /// Writes what `snapshot` returns, if there is a mark; nil: nothing is to be written now, and the mark is taken away.
  ///
  /// Returns after a write that another thread has begun. `waits`: whether what may be written later is left for then.
  func saveMarked(waits: Bool = true, _ snapshot: () -> Contents?) {
    let line = writing.withLock { _ -> String? in
      let isMarked = state.withLock { state in
        defer { state.isMarked = false }
        return state.isMarked || !waits && state.later != nil
      }
      return isMarked ? snapshot().flatMap { write($0) } : nil
    }
    if let line { log.note(line) }
  }

  /// Makes the file tell `contents`, unless it does; durable when it returns, or the log has a line.
  func save(_ contents: Contents) {
    if let line = writing.withLock({ _ in write(contents) }) { log.note(line) }
  }

  /// Returns what the log is to be told, which may do as it likes and is therefore called without a lock.
  private func write(_ contents: Contents) -> String? {
    let isNews = state.withLock { state in
      // The file may be another manager's by now.
      guard !state.isClosed else { return false }
      return switch state.onDisk {
      case .unknown: true
      case .nothing: !contents.isEmpty
      case .contents(let known): known != contents
      }
    }
    guard isNews else { return nil }
    do {
      if contents.isEmpty {
        try store.remove()
      } else {
        try store.write(SavedState(identifier: identifier, contents: contents).encoded())
      }
      state.withLock { state in
        state.onDisk = contents.isEmpty ? .nothing : .contents(contents)
        state.hasToldFailure = false
      }
      return nil
    } catch {
      let isFirst = state.withLock { state in
        state.onDisk = .unknown
        defer { state.hasToldFailure = true }
        return !state.hasToldFailure
      }
      return isFirst
        ? "State cannot be saved, and a restart would restore what was saved before: \(error)." : nil
    }
  }

  /// Gives the identifier up, after a write that another thread has begun; the file stays.
  func close() {
    let later = state.withLock { state in
      state.isClosed = true
      defer { state.later = nil }
      return state.later
    }
    later?.cancel()
    writing.withLock { _ in store.close() }
  }
}
