import CoreBluetooth
import Foundation
import Locking

/// Writes down connections as a program does that knows of automatic reconnection, and runs what a test wants done at each.
final class ReconnectionRecorder: NSObject, CBCentralManagerDelegate, @unchecked Sendable {
  let lines = Lines()
  private let state = PosixMutex(State())

  private struct State {
    var times: [CFAbsoluteTime] = []
    var reaction: (@Sendable (String, CBPeripheral) -> Void)?
  }

  /// When each link ended.
  var times: [CFAbsoluteTime] { state.withLock { $0.times } }

  func react(_ reaction: (@Sendable (String, CBPeripheral) -> Void)?) {
    state.withLock { $0.reaction = reaction }
  }

  private func note(_ line: String, _ peripheral: CBPeripheral) {
    lines.append(line)
    state.withLock { $0.reaction }?(line, peripheral)
  }

  private func text(_ error: (any Error)?) -> String { (error as NSError?).map { " error \($0.code)" } ?? "" }

  func centralManagerDidUpdateState(_ central: CBCentralManager) { lines.append("state \(central.state)") }

  func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
    note("connected, \(peripheral.state)", peripheral)
  }

  func centralManager(
    _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
  ) { note("failed, \(peripheral.state)\(text(error))", peripheral) }

  func centralManager(
    _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
    isReconnecting: Bool, error: (any Error)?
  ) {
    state.withLock { $0.times.append(timestamp) }
    note(
      "disconnected, \(peripheral.state), \(isReconnecting ? "reconnecting" : "for good")\(text(error))",
      peripheral)
  }
}
