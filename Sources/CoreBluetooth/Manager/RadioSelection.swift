internal import BlueZRadio
internal import DBus
internal import Locking
internal import Foundation
internal import Radio
internal import VirtualRadio

/// Finds the radio that a program, or the person who runs it, has chosen.
enum RadioSelection {
  static let variable = "COREBLUETOOTH_RADIO"
  /// What words can be.
  static let kinds =
    "bluez for this host's Bluetooth, bluez:hci1 for one of its adapters, virtual:DIR for a simulated air, none for no radio"

  /// The words in the environment, or else those of the host's own radio, where a bus for its daemon is there; nil: there is nothing to choose.
  static var words: String? {
    words(in: ProcessInfo.processInfo.environment, hasBus: DBusAddress.system.isPresent())
  }

  /// An empty value counts as none.
  static func words(in environment: [String: String], hasBus: Bool) -> String? {
    if let words = environment[variable], !words.isEmpty { return words }
    return hasBus ? "bluez" : nil
  }

  /// Whether this process may use the radio that `words` name; allowed where no manager is on it.
  static func authorization(of words: String?) -> CBManagerAuthorization {
    let radio = words.flatMap { RadioRegistry.shared.existingRadio(for: $0) }
    return CBManagerAuthorization(radio?.authorization ?? .allowed)
  }

  /// The radio for the value of ``CBManagerOptionRadioKey``, or where that says nothing, for the words in the environment.
  ///
  /// Where there is none, one line is logged and the radio is one without an adapter.
  static func radio(for option: Any?, log: CBLogHandler) -> any Radio {
    if let radio = option as? any Radio { return radio }
    if let option, !(option is String) {
      log.note(
        "The value of CBManagerOptionRadioKey is a \(type(of: option)), neither a radio nor words for one.")
      return AbsentRadio()
    }
    let given = option as? String ?? ""
    guard let words = given.isEmpty ? Self.words : given else {
      log.note("There is no Bluetooth radio: this host has no system bus. Set \(variable): \(kinds).")
      return AbsentRadio()
    }
    guard words != "none" else {
      log.note("There is to be no Bluetooth radio. Set \(variable) to another: \(kinds).")
      return AbsentRadio()
    }
    do {
      return try RadioRegistry.shared.radio(for: words, log: log)
    } catch {
      log.note("The radio \"\(words)\" cannot be used: \(error)")
      return AbsentRadio()
    }
  }

  /// Makes the radio that `words` name; what it has to say to people goes to `log`.
  ///
  /// In a simulated air the adapter has the name of the program, so that other programs know it again after it was started anew.
  static func make(_ words: String, log: CBLogHandler) throws -> any Radio {
    let parts = words.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    switch (parts.first, parts.dropFirst().first) {
    case ("virtual", let directory?) where !directory.isEmpty:
      return try VirtualRadio(words: String(directory))
    case ("bluez", let adapter):
      return try BlueZRadio(adapter: adapter.map { String($0) }) { log.note($0) }
    default:
      throw RadioError(.invalidParameters, "there is no such radio; there are \(kinds)")
    }
  }
}

/// The radios that words have named, as long as somebody uses them.
///
/// The one thing that is global to the process, because what it stands for is: two managers that name the same adapter, or the same air, must
/// share it, though nothing else connects them. It holds radios weakly.
final class RadioRegistry: Sendable {
  static let shared = RadioRegistry()

  private struct Entry {
    weak var radio: (any Radio)?
  }

  private let entries = PosixMutex<[String: Entry]>([:])

  /// The radio that somebody uses under these words.
  func existingRadio(for words: String) -> (any Radio)? { entries.withLock { $0[words]?.radio } }

  /// The radio that somebody uses under these words, or a new one, which tells `log` what people should know.
  func radio(for words: String, log: CBLogHandler) throws -> any Radio {
    try entries.withLock { entries in
      if let radio = entries[words]?.radio { return radio }
      let radio = try RadioSelection.make(words, log: log)
      entries = entries.filter { $0.value.radio != nil }
      entries[words] = Entry(radio: radio)
      return radio
    }
  }
}
