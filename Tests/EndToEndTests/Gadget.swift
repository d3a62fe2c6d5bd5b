import CoreBluetooth
import Foundation
import Locking
import Radio
import VirtualRadio

/// A small device of another make: one service, whose writes and reads it answers or leaves unanswered.
// Sendable: what changes is in `state`, behind its lock; the manager is used on its queue.
final class Gadget: NSObject, CBPeripheralManagerDelegate, @unchecked Sendable {
  static let service = CBUUID(string: "12345678-1234-1234-1234-123456789ABC")
  static let command = CBUUID(string: "12345678-1234-1234-1234-123456789A01")
  static let event = CBUUID(string: "12345678-1234-1234-1234-123456789A02")

  private struct State {
    var answers = true
    var advertising: CheckedContinuation<Void, Never>?
    var written: [Data] = []
    /// Requests that are not answered: one that is released is answered with an error.
    var unanswered: [CBATTRequest] = []
    var onWrite: (@Sendable () -> Void)?
    var waiter: (count: Int, continuation: CheckedContinuation<[Data], Never>)?
  }

  private let name: String
  private let state = PosixMutex(State())
  private let queue = DispatchQueue(label: "gadget")
  private var manager: CBPeripheralManager?

  init(_ name: String) { self.name = name }

  /// Starts it, and returns once it advertises.
  static func start(_ name: String, on radio: any Radio) async -> Gadget {
    let gadget = Gadget(name)
    await withCheckedContinuation { continuation in
      gadget.state.withLock { $0.advertising = continuation }
      gadget.queue.sync {
        gadget.manager = CBPeripheralManager(
          delegate: gadget, queue: gadget.queue, options: [CBManagerOptionRadioKey: radio])
      }
    }
    return gadget
  }

  /// Waits until so much was written, and returns all of it.
  func writes(atLeast count: Int) async -> [Data] {
    await withCheckedContinuation { continuation in
      let written = state.withLock { state -> [Data]? in
        if state.written.count >= count { return state.written }
        state.waiter = (count, continuation)
        return nil
      }
      if let written { continuation.resume(returning: written) }
    }
  }

  /// Whether requests are answered at all.
  func setAnswers(_ answers: Bool) { state.withLock { $0.answers = answers } }

  /// Does something after each write, as the device would.
  func afterWrite(_ work: @escaping @Sendable () -> Void) { state.withLock { $0.onWrite = work } }

  /// Replaces its services by new ones, as another firmware would.
  func changeServices(withCommand: Bool = true) {
    queue.async {
      self.manager?.removeAllServices()
      self.addService(withCommand: withCommand)
    }
  }

  func stop() { queue.sync { manager = nil } }

  private func addService(withCommand: Bool = true) {
    let command = CBMutableCharacteristic(
      type: Self.command, properties: [.read, .write], value: nil, permissions: [.readable, .writeable])
    let event = CBMutableCharacteristic(type: Self.event, properties: .notify, value: nil, permissions: [])
    let service = CBMutableService(type: Self.service, primary: true)
    service.characteristics = withCommand ? [command, event] : [event]
    manager?.add(service)
  }

  func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
    guard peripheral.state == .poweredOn else { return }
    peripheral.removeAllServices()
    manager = peripheral
    addService()
    peripheral.startAdvertising([
      CBAdvertisementDataLocalNameKey: name, CBAdvertisementDataServiceUUIDsKey: [Self.service],
    ])
  }

  func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
    let waiting = state.withLock { state in
      defer { state.advertising = nil }
      return state.advertising
    }
    waiting?.resume()
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
    let (answers, onWrite, waiting) = state.withLock { state in
      state.written += requests.compactMap(\.value)
      var waiting: (CheckedContinuation<[Data], Never>, [Data])?
      if let waiter = state.waiter, state.written.count >= waiter.count {
        waiting = (waiter.continuation, state.written)
        state.waiter = nil
      }
      if !state.answers { state.unanswered += requests }
      return (state.answers, state.onWrite, waiting)
    }
    waiting?.0.resume(returning: waiting?.1 ?? [])
    if answers, let first = requests.first { peripheral.respond(to: first, withResult: .success) }
    onWrite?()
  }

  func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
    let answers = state.withLock { state in
      if !state.answers { state.unanswered.append(request) }
      return state.answers
    }
    guard answers else { return }
    request.value = Data("value".utf8)
    peripheral.respond(to: request, withResult: .success)
  }
}
