import Locking
import Radio

/// Remembers the events of a channel.
final class ChannelLog: Sendable {
  private let events = PosixMutex<[ChannelEvent]>([])
  private let world: any RadioWorld

  init(_ world: any RadioWorld) { self.world = world }

  var sink: @Sendable (ChannelEvent) -> Void {
    { [self] event in
      events.withLock { $0.append(event) }
      world.noteProgress()
    }
  }

  var log: [ChannelEvent] { events.withLock { $0 } }

  /// Why the channel has closed; nil: it has not.
  var end: RadioError?? {
    for case .closed(let reason) in log { return .some(reason) }
    return nil
  }

  func count(of event: ChannelEvent) -> Int { log.filter { $0 == event }.count }
}
