internal import Locking
internal import Foundation
internal import Radio
internal import VirtualRadio

/// Finds the radio that a program, or the person who runs it, has chosen.
enum RadioSelection {
  static let variable = "COREBLUETOOTH_RADIO"

  /// The words in the environment.
  static var words: String? { ProcessInfo.processInfo.environment[variable] }

  /// Whether this process may use the radio that `words` name; allowed where no manager is on it.
  static func authorization(of words: String?) -> CBManagerAuthorization {
    let radio = words.flatMap { RadioRegistry.shared.existingRadio(for: $0) }
    return CBManagerAuthorization(radio?.authorization ?? .allowed)
  }

  /// The radio for the value of ``CBManagerOptionRadioKey``, or where that is nil, for the words in the environment.
  ///
  /// Where there is none, one line is logged and the radio is one without an adapter.
  static func radio(for option: Any?, log: CBLogHandler) -> any Radio {
    if let radio = option as? any Radio { return radio }
    if let option, !(option is String) {
      log.note(
        "The value of CBManagerOptionRadioKey is a \(type(of: option)), neither a radio nor words for one.")
      return AbsentRadio()
    }
    guard let words = option as? String ?? Self.words, !words.isEmpty
    else {
      log.note(
        "There is no Bluetooth radio: set \(variable), for example to virtual:DIR for a simulated one.")
      return AbsentRadio()
    }
    do {
      return try RadioRegistry.shared.radio(for: words)
    } catch {
      log.note("The radio \"\(words)\" cannot be used: \(error)")
      return AbsentRadio()
    }
  }

  /// Makes the radio that `words` name.
  ///
  /// In a simulated air the adapter has the name of the program, so that other programs know it again after it was started anew.
  static func make(_ words: String) throws -> any Radio {
    let parts = words.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    switch (parts.first, parts.dropFirst().first) {
    case ("virtual", let directory?) where !directory.isEmpty:
      return try VirtualRadio(words: String(directory))
    default:
      throw RadioError(.invalidParameters, "there is no radio of that kind; give virtual:DIR")
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

  func radio(for words: String) throws -> any Radio {
    try entries.withLock { entries in
      if let radio = entries[words]?.radio { return radio }
      let radio = try RadioSelection.make(words)
      entries = entries.filter { $0.value.radio != nil }
      entries[words] = Entry(radio: radio)
      return radio
    }
  }
}
