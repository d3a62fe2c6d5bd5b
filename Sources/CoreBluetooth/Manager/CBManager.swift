public import Foundation
public import Radio

/// Chooses a manager's radio; the value is a radio object (`any Radio`) or the words for one (`String`).
///
/// Not in Apple's framework. Without it, the environment variable `COREBLUETOOTH_RADIO` holds the words; see ``CBManager``.
public let CBManagerOptionRadioKey: String = "CoreBluetoothRadio"

/// Receives the lines that a manager logs; the value is a ``CBLogHandler``. Not in Apple's framework.
public let CBManagerOptionLogHandlerKey: String = "CoreBluetoothLogHandler"

/// The folder for the saved state of a manager with a restore identifier; the value is a path or a file URL. Not in Apple's framework.
///
/// Without it the state is kept under `$XDG_STATE_HOME`, or `~/.local/state`, in a folder of the program's name.
public let CBManagerOptionStateDirectoryKey: String = "CoreBluetoothStateDirectory"

/// What central and peripheral managers have in common.
///
/// ## Which radio
/// A manager sits on the radio that ``CBManagerOptionRadioKey`` or the environment variable `COREBLUETOOTH_RADIO` names: `bluez` is this host's
/// Bluetooth, `bluez:hci1` one of its adapters, `virtual:DIR` the simulated air in a directory, `none` no radio. Without words it is
/// `bluez`, where the host has a system bus. Managers of one process that give the same words share one radio. Where there is none, the state
/// is `unsupported` and one line in the log says what to set.
///
/// ## Threads
/// Every method may be called on any thread, also inside every callback. Callbacks come serially on the manager's queue, never inside the call
/// that caused them, even where the queue is concurrent. Delegates are held weakly.
// Sendable: what changes is behind the locks of the subclasses' cores.
open class CBManager: NSObject, @unchecked Sendable {
  let log: CBLogHandler
  let radio: any Radio

  init(_cb radio: any Radio, log: CBLogHandler) {
    self.radio = radio
    self.log = log
    super.init()
  }

  /// What Bluetooth can do right now; `unknown` until the first update.
  open var state: CBManagerState { .unknown }

  /// Whether this process may use Bluetooth: the radio of the environment (see ``CBManager``), as soon as a manager is on it. Where a system forbids it,
  /// ``state`` is `unauthorized`.
  open class var authorization: CBManagerAuthorization {
    RadioSelection.authorization(of: RadioSelection.words)
  }

  /// Whether this process may use Bluetooth.
  open var authorization: CBManagerAuthorization {
    let own = CBManagerAuthorization(radio.authorization)
    return own == .allowedAlways && state == .unauthorized ? .denied : own
  }

  /// The time in which the manager's radio lives, which timers of programs must use where it is simulated.
  @_spi(Streams) public var radioClock: any RadioClock { radio.clock }
}

extension CBManagerAuthorization {
  init(_ authorization: RadioAuthorization) {
    switch authorization {
    case .notDetermined: self = .notDetermined
    case .restricted: self = .restricted
    case .denied: self = .denied
    case .allowed: self = .allowedAlways
    }
  }
}

extension CBManagerState {
  init(_ state: AdapterState) {
    switch state {
    case .unknown: self = .unknown
    case .resetting: self = .resetting
    case .unsupported: self = .unsupported
    case .unauthorized: self = .unauthorized
    case .poweredOff: self = .poweredOff
    case .poweredOn: self = .poweredOn
    }
  }

  /// Whether nothing that was made in a better state is valid any more.
  var isBelowPoweredOff: Bool { rawValue < Self.poweredOff.rawValue }
}
