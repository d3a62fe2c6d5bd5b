internal import BulkTransfer
internal import Foundation
internal import Radio
internal import VirtualRadio

/// Options that choose a radio and say what a simulated link is like.
enum RadioOptions {
  /// How the time of a simulated air passes.
  enum ClockChoice: String, CaseIterable, Sendable {
    case real, unpaced, lockstep

    var mode: VirtualClock.Mode {
      switch self {
      case .real: .realTime
      case .unpaced: .unpaced
      case .lockstep: .lockStep
      }
    }
  }

  /// Words that are a fault plan by themselves; several are joined.
  struct FaultWords: Hashable, Sendable {
    let words: String
  }

  static let variable = "COREBLUETOOTH_RADIO"

  static let radio = Option(
    "radio", .text("RADIO"), "virtual:DIR, the simulated air in that folder (what \(variable) says)")
  static let link = Option(
    "link", .link, "What the simulated link is like, such as phy=2M,mtu=247,interval=30; see help link")
  static let fault = Option(
    "fault", .faults, "What goes wrong on the simulated link, such as drop@40%; see help fault", repeats: true
  )
  static let clock = Option(
    "clock", .oneOf(ClockChoice.self),
    "How simulated time passes: as ours, as fast as it can, or in lock-step (real)")
  static let seed = Option("seed", .seed, "Which random numbers the simulation draws (1)")
  static let capture = Option(
    "capture", .text("FILE"), "Record what is on the air, as btsnoop for Wireshark")

  static func plan(_ arguments: ParsedArguments) throws -> FaultPlan {
    try FaultPlan(parsing: arguments.all(fault).map(\.words).joined(separator: ","))
  }

  static func capture(_ arguments: ParsedArguments, printer: any EventPrinter) throws -> BTSnoopWriter? {
    guard let path = arguments[capture] else { return nil }
    do {
      return try BTSnoopWriter(path: path) { failure in
        printer.show(.warning(TransferError(.storage, failure.description)))
      }
    } catch {
      throw TransferError(.storage, error.description)
    }
  }
}

extension ValueSyntax where Value == LinkParameters {
  static var link: Self {
    Self("KEY=VALUE,...") { text throws(InvalidValue) in
      do throws(SettingError) {
        return try LinkParameters(parsing: text)
      } catch {
        throw InvalidValue("describes no link: \(error)")
      }
    }
  }
}

extension ValueSyntax where Value == RadioOptions.FaultWords {
  static var faults: Self {
    Self("FAULT") { text throws(InvalidValue) in
      do throws(SettingError) {
        _ = try FaultPlan(parsing: text)
        return RadioOptions.FaultWords(words: text)
      } catch {
        throw InvalidValue("is no fault: \(error)")
      }
    }
  }
}
