internal import DBus
internal import Foundation
internal import Radio

/// Requests of centrals that wait for the client's answer, each with a time limit.
struct RequestTable {
  /// bluetoothd gives up after 5 s, and the code that the central gets then says nothing.
  static let timeLimit = Duration.milliseconds(4500)
  /// A link has one request at a time, so this is more than there can be.
  static let most = 256

  struct Entry {
    let invocation: DBusInvocation
    let access: ATTAnswer.Access
    let device: ObjectPath
    let timer: ScheduledWork
  }

  private var entries: [ServerRequestID: Entry] = [:]
  private var last: UInt64 = 0

  var isFull: Bool { entries.count >= Self.most }

  /// A number that no other request has.
  mutating func makeID() -> ServerRequestID {
    last += 1
    return ServerRequestID(last)
  }

  mutating func add(_ entry: Entry, as id: ServerRequestID) { entries[id] = entry }

  /// Takes a request out; nil where it has been answered, is too old, or its link has ended.
  mutating func take(_ id: ServerRequestID) -> Entry? {
    let entry = entries.removeValue(forKey: id)
    entry?.timer.cancel()
    return entry
  }

  /// Ends requests that nobody can answer any more: all, or those of one central.
  mutating func failAll(of device: ObjectPath? = nil) {
    for (id, entry) in entries where device == nil || entry.device == device {
      _ = take(id)
      entry.invocation.fail(ATTAnswer.refusal(.unlikelyError, of: entry.access))
    }
  }
}
