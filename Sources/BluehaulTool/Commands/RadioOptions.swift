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

  /// How the time of an air between processes passes; they cannot share one that stands still.
  enum SharedClockChoice: String, CaseIterable, Sendable {
    case real, unpaced

    var mode: VirtualClock.Mode { self == .real ? .realTime : .unpaced }
  }

  /// Words that are a fault plan by themselves; several are joined.
  struct FaultWords: Hashable, Sendable {
    let words: String
  }

  /// A link, and which of its values were said.
  struct LinkWords: Hashable, Sendable {
    let parameters: LinkParameters
    let keys: Set<String>
  }

  static let variable = "COREBLUETOOTH_RADIO"

  static let radio = Option(
    "radio", .text("RADIO"),
    "bluez or bluez:hci1, this host's Bluetooth; virtual:DIR, the simulated air in that folder (what \(variable) says, else bluez)"
  )
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

  /// Bytes per second that a simulated link carries at best.
  static func ceiling(of link: LinkParameters, _ carrier: CarrierKind) -> Double {
    LinkCeiling(link).octetsPerSecond(of: carrier.traffic)
  }

  /// Names of the options that only a simulated link can follow.
  static let simulationOnly = [
    link.declaration.name, fault.declaration.name, clock.declaration.name, seed.declaration.name,
    capture.declaration.name,
  ]

  static let sharedClock = Option(
    "clock", .oneOf(SharedClockChoice.self), "How the time of the simulated link passes (real)")
  static let senderLink = Option(
    "link", .link,
    "What this end of the simulated link can do: mtu, dle, packets, encrypted, per, queue; see help link")
  /// For commands that only listen.
  static let listeningSection = CommandDeclaration.Section(
    title: "Radio options", options: [radio.declaration])
  /// For commands that send.
  static let senderSection = CommandDeclaration.Section(
    title: "Radio options",
    options: [
      radio.declaration, senderLink.declaration, fault.declaration, capture.declaration,
    ])
  /// For the device, whose process simulates the link.
  static let deviceSection = CommandDeclaration.Section(
    title: "Radio options",
    options: [
      radio.declaration, link.declaration, fault.declaration, sharedClock.declaration, seed.declaration,
      capture.declaration,
    ])

  static func capture(_ arguments: ParsedArguments, printer: any EventPrinter) throws -> BTSnoopWriter? {
    guard let path = arguments[capture] else { return nil }
    // What must stay is refused in the same words as everywhere.
    _ = try OutputFile(path: path, kind: .capture)
    do {
      return try BTSnoopWriter(path: path) { failure in
        printer.show(.warning(TransferError(.storage, failure.description)))
      }
    } catch {
      throw TransferError(
        .storage, error.description,
        advice: error.errorNumber == ENXIO
          ? "start its reader first" : "name another file with --\(capture.declaration.name)")
    }
  }
}

extension CarrierKind {
  /// What the data of a transfer is on the link.
  var traffic: LinkCeiling.Traffic {
    switch self {
    case .gatt: .commands
    case .l2cap: .channel
    }
  }
}

extension ValueSyntax where Value == RadioOptions.LinkWords {
  static var link: Self {
    Self("KEY=VALUE,...") { text throws(InvalidValue) in
      do throws(SettingError) {
        let keys = text.split(separator: ",").map { item in
          item.prefix { $0 != "=" }.filter { !$0.isWhitespace }.lowercased()
        }
        return RadioOptions.LinkWords(parameters: try LinkParameters(parsing: text), keys: Set(keys))
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

extension OutputFile.Kind {
  /// Captures as btsnoop: made by this program or another one.
  static let capture = Self("capture") { $0.starts(with: Data("btsnoop\0".utf8)) }
}
