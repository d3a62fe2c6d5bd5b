import CoreBluetooth

let notebookID = CBUUID(string: "5AE0D000-6E6F-7465-0000-000000000000")
let noteID = CBUUID(string: "5AE0D001-6E6F-7465-0000-000000000000")
let psmID = CBUUID(string: CBUUIDL2CAPPSMCharacteristicString)
let restoreKey: String? = nil
let longestNote = 40

/// What went wrong is worth another try.
let outOfRangeCodes: Set<CBError.Code> = [.unknown, .connectionTimeout, .peripheralDisconnected]

/// How many callbacks there were; as programs counted before they were told not to.
var callbacks = 0

enum NotebookError: Error {
  case refused(CBATTError.Code)
  case lost
  case other(Error)
}

/// Ends the program where the other side does not do its part.
class TimeLimit {
  let timer: Timer

  init(seconds: TimeInterval, expired: @escaping () -> Void) {
    timer = Timer.scheduledTimer(withTimeInterval: seconds, repeats: false, block: { _ in expired() })
  }

  deinit { timer.invalidate() }
}

protocol Labelled {
  var label: String { get }
}

extension CBPeripheral: Labelled {
  var label: String { return name ?? identifier.uuidString }

  var notebook: CBService? {
    guard let services = services else { return nil }
    return services.first { $0.uuid == notebookID }
  }

  func characteristic(_ id: CBUUID) -> CBCharacteristic? {
    return notebook?.characteristics?.filter { $0.uuid == id }.first
  }
}

extension CBManagerState: Labelled {
  var label: String {
    switch self {
    case .unknown: return "unknown"
    case .resetting: return "resetting"
    case .unsupported: return "unsupported"
    case .unauthorized: return "unauthorized"
    case .poweredOff: return "off"
    case .poweredOn: return "on"
    @unknown default: return "new"
    }
  }
}
