public import Foundation
internal import Locking

/// Keeps the journal of one push: claims the transfer, writes how far it got, and removes the record once the device has verified all.
///
/// The record tells people and `resume` what is unfinished. It never decides where a transfer goes on: that is the device's word.
public final class PushJournal: Sendable {
  private struct State {
    var record: TransferRecord
    /// The first failure to write; told once, when the push has ended.
    var failure: TransferError?
    /// Whether there is something to go on with: an earlier record, or an object of which the device has said where it stands.
    var hasBegun: Bool
  }

  /// What was recorded by an earlier attempt.
  public let earlier: TransferRecord?

  private let claim: TransferClaim
  private let state: PosixMutex<State>

  /// Claims the transfer of `plan` to `device`.
  ///
  /// - Parameters:
  ///   - folder: where relative paths of the opened files begin, the current folder; the record holds absolute ones.
  ///   - facts: what `resume` needs if this run ends before the device was reached, such as the radio.
  ///   - discardsDamaged: replace a record that cannot be read.
  /// - Throws: `locked` where another process works on it; `damagedState` where the record cannot be read.
  public init(
    _ plan: PushPlan, device: TransferManifest.Target, in journal: TransferJournal, folder: String,
    facts: [String: String] = [:], discardsDamaged: Bool = false, date: Date = Date()
  ) throws(TransferError) {
    let claim = try journal.claim(plan.manifest.transferID, device: device)
    let earlier: TransferRecord?
    do throws(TransferError) {
      earlier = try claim.load()
    } catch {
      guard discardsDamaged, error.code == .damagedState else { throw error }
      earlier = nil
    }
    var objects: [TransferRecord.Object] = []
    for (index, (object, image)) in zip(plan.manifest.objects, plan.images).enumerated() {
      let opened = image.inspection.path
      let path = opened.hasPrefix("/") ? opened : "\(folder)/\(opened)"
      objects.append(
        TransferRecord.Object(
          name: object.name, path: path, format: object.format, range: object.range,
          fileSize: image.inspection.fileSize, fileModified: image.inspection.fileModified, size: object.size,
          sha256: object.sha256, confirmed: earlier?.objects[safe: index]?.confirmed ?? 0))
    }
    let record = try TransferRecord(
      device: device, objects: objects, started: earlier?.started ?? date, updated: date,
      link: (earlier?.link ?? [:]).merging(facts) { $1 })
    self.claim = claim
    self.earlier = earlier
    state = PosixMutex(State(record: record, hasBegun: earlier != nil))
    try claim.save(record)
  }

  /// Notes what the device calls durable; for ``PushOperation``'s `record`.
  public func note(durable: [UInt64], facts: [String: String], date: Date = Date()) {
    state.withLock { state in
      if !durable.isEmpty { state.hasBegun = true }
      for (index, offset) in durable.enumerated() where state.record.objects.indices.contains(index) {
        state.record.objects[index].confirmed = min(offset, state.record.objects[index].size)
      }
      state.record.link = facts
      save(&state, date)
    }
  }

  /// Ends the journal's part: the record goes where the push was a success, else it says why the push ended. A push that was turned away before
  /// anything had begun leaves no record either: there is nothing to go on with.
  ///
  /// - Throws: the first failure to write the record, if there was one.
  public func end(_ error: TransferError?, date: Date = Date()) throws(TransferError) {
    if let error {
      guard error.canGoOnUnbegun || state.withLock({ $0.hasBegun }) else { return try claim.complete() }
      let failure: TransferError? = state.withLock { state in
        state.record.lastError = TransferRecord.Failure(error)
        save(&state, date)
        return state.failure
      }
      claim.release()
      if let failure { throw failure }
    } else {
      try claim.complete()
    }
  }

  private func save(_ state: inout State, _ date: Date) {
    state.record.updated = date
    do throws(TransferError) {
      try claim.save(state.record)
    } catch {
      if state.failure == nil { state.failure = error }
    }
  }
}

extension Array {
  fileprivate subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}

extension TransferError {
  /// Whether the same push may do better with nothing changed, so that its record is kept though nothing has begun: nobody has turned it away.
  fileprivate var canGoOnUnbegun: Bool {
    [.cancelled, .disconnected, .timedOut, .deviceNotFound, .radioUnavailable].contains(code)
  }
}
