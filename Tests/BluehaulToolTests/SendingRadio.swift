import Foundation
import Locking
import Radio

/// Something to do once, at a moment of a transfer that the radio itself shows: what is printed of it comes whenever a task finds the time, and simulated time
/// does not wait for that.
struct SendingMoment: Sendable {
  /// So many octets were handed to the radio, on channels and as write commands.
  let octets: Int
  let act: @Sendable () -> Void
}

/// A radio that passes everything on, and tells its clock to do something once its centrals have sent so much.
final class SendingRadio: Radio {
  private struct State {
    var sent = 0
    var moment: SendingMoment?
  }

  private let base: any Radio
  private let state: PosixMutex<State>

  init(_ base: any Radio, moment: SendingMoment) {
    self.base = base
    state = PosixMutex(State(moment: moment))
  }

  var name: String { base.name }
  var clock: any RadioClock { base.clock }
  var authorization: RadioAuthorization { base.authorization }

  func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio {
    SendingCentral(base.makeCentral { [self] event in sink(counting(event)) }, self)
  }

  func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio {
    base.makePeripheral(sink: sink)
  }

  /// Puts a channel that counts in the place of one that was opened.
  private func counting(_ event: CentralEvent) -> CentralEvent {
    guard case .completed(let id, let peer, .success(.channel(let channel))) = event else { return event }
    return .completed(id, peer, .success(.channel(SendingChannel(channel, self))))
  }

  /// Whoever sends is at work on a queue that simulated time waits for: it does not move on before the moment has come.
  fileprivate func sent(_ octets: Int) {
    let moment = state.withLock { state -> SendingMoment? in
      state.sent += octets
      guard let moment = state.moment, state.sent >= moment.octets else { return nil }
      state.moment = nil
      return moment
    }
    if let moment { _ = clock.schedule(after: .zero, moment.act) }
  }
}

private final class SendingChannel: RadioChannel {
  private let base: any RadioChannel
  private let radio: SendingRadio

  init(_ base: any RadioChannel, _ radio: SendingRadio) { (self.base, self.radio) = (base, radio) }

  var psm: PSM { base.psm }
  var peer: PeerID { base.peer }
  var hasBytes: Bool { base.hasBytes }
  var hasSpace: Bool { base.hasSpace }
  func setSink(_ sink: (@Sendable (ChannelEvent) -> Void)?) { base.setSink(sink) }
  func read(upTo count: Int) -> Data { base.read(upTo: count) }
  func close() { base.close() }

  func write(_ bytes: Data) -> Int {
    let count = base.write(bytes)
    radio.sent(count)
    return count
  }
}

// Sendable: as the class that it inherits from.
private final class SendingCentral: PassingCentral, @unchecked Sendable {
  private let radio: SendingRadio

  init(_ base: any CentralRadio, _ radio: SendingRadio) {
    self.radio = radio
    super.init(base)
  }

  override func writeWithoutResponse(
    _ value: Data, to characteristic: AttributeHandle, of peer: PeerID
  ) -> WriteOutcome {
    let outcome = super.writeWithoutResponse(value, to: characteristic, of: peer)
    if outcome == .accepted { radio.sent(value.count) }
    return outcome
  }
}
