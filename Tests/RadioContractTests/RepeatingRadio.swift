import Dispatch
import Foundation
import Locking
import Radio

/// A radio whose advertisements are begun anew every second: controllers in software report one only when it begins, real ones all the time.
final class RepeatingRadio: Radio {
  private let radio: any Radio

  init(_ radio: any Radio) { self.radio = radio }

  var name: String { radio.name }
  var clock: any RadioClock { radio.clock }
  var authorization: RadioAuthorization { radio.authorization }

  func makeCentral(sink: @escaping @Sendable (CentralEvent) -> Void) -> any CentralRadio {
    radio.makeCentral(sink: sink)
  }

  func makePeripheral(sink: @escaping @Sendable (PeripheralEvent) -> Void) -> any PeripheralRadio {
    RepeatingPeripheral(radio, sink)
  }
}

/// Passes everything on, and repeats the advertisement.
private final class RepeatingPeripheral: PeripheralRadio {
  private struct State {
    var advertisement: Advertisement?
    /// Answers to come that nobody but this has asked for.
    var own = 0
  }

  private final class Ledger: Sendable {
    let state = PosixMutex(State())
  }

  private let ledger = Ledger()
  private let peripheral: any PeripheralRadio
  private let clock: any RadioClock

  init(_ radio: any Radio, _ sink: @escaping @Sendable (PeripheralEvent) -> Void) {
    clock = radio.clock
    peripheral = radio.makePeripheral { [ledger] event in
      switch event {
      case .advertisingStarted:
        let isOwn = ledger.state.withLock { state in
          guard state.own > 0 else { return false }
          state.own -= 1
          return true
        }
        if isOwn { return }
      case .adapterStateChanged(let adapter) where adapter != .poweredOn:
        ledger.state.withLock { state in
          state.advertisement = nil
          state.own = 0
        }
      default: break
      }
      sink(event)
    }
    repeatLater()
  }

  private func repeatLater() {
    _ = clock.schedule(after: .seconds(1)) { [weak self] in
      guard let self else { return }
      ledger.state.withLock { state in
        guard let advertisement = state.advertisement else { return }
        state.own += 1
        peripheral.stopAdvertising()
        peripheral.startAdvertising(advertisement)
      }
      repeatLater()
    }
  }

  var adapterState: AdapterState { peripheral.adapterState }

  // The lock keeps a repetition from coming between.
  func startAdvertising(_ advertisement: Advertisement) {
    ledger.state.withLock { state in
      state.advertisement = advertisement
      peripheral.startAdvertising(advertisement)
    }
  }

  func stopAdvertising() {
    ledger.state.withLock { state in
      state.advertisement = nil
      peripheral.stopAdvertising()
    }
  }

  func addService(_ service: LocalService) { peripheral.addService(service) }
  func removeService(_ id: LocalServiceID) { peripheral.removeService(id) }
  func removeAllServices() { peripheral.removeAllServices() }
  func respond(toRead id: ServerRequestID, with result: Result<Data, ATTErrorCode>) {
    peripheral.respond(toRead: id, with: result)
  }
  func respond(toWrites id: ServerRequestID, with result: Result<Void, ATTErrorCode>) {
    peripheral.respond(toWrites: id, with: result)
  }
  func notify(_ value: Data, of characteristic: LocalCharacteristicID, to centrals: [PeerID]?) -> Bool {
    peripheral.notify(value, of: characteristic, to: centrals)
  }
  func publishChannel(requiresEncryption: Bool) {
    peripheral.publishChannel(requiresEncryption: requiresEncryption)
  }
  func unpublishChannel(_ psm: PSM) { peripheral.unpublishChannel(psm) }
  func attMTU(of central: PeerID) -> Int? { peripheral.attMTU(of: central) }
  func requestLatency(_ latency: LinkLatency, for central: PeerID) {
    peripheral.requestLatency(latency, for: central)
  }
}
