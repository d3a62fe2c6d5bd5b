internal import BulkTransfer
internal import Foundation
internal import Radio
internal import VirtualRadio

/// What a command wants from a radio, after all options were checked.
struct RadioRequest: Sendable {
  /// The words that chose the radio.
  let words: String
  /// How the adapter is called.
  let name: String
  let link: LinkParameters
  let faults: FaultPlan
  let clock: VirtualClock.Mode
  let seed: UInt64
  let capture: BTSnoopWriter?

  /// The words with which another run, from any folder, finds the same radio, as a fact of a journal; none where they are too long for it.
  var journalFacts: [String: String] {
    let folder = words.dropFirst("virtual:".count)
    let isRelative = words.hasPrefix("virtual:") && !folder.isEmpty && !folder.hasPrefix("/")
    let lasting = isRelative ? "virtual:\(FileManager.default.currentDirectoryPath)/\(folder)" : words
    return lasting.utf8.count <= TransferRecord.longestFact ? ["radio": lasting] : [:]
  }

  /// The radio of a command that listens or sends.
  ///
  /// - Parameters:
  ///   - words: the radio of an earlier run, where the command line names none.
  ///   - totalBytes: what will be sent.
  static func sender(
    _ invocation: Invocation, otherwise words: String? = nil, totalBytes: UInt64 = 0
  ) throws -> RadioRequest {
    let arguments = invocation.arguments
    // What this end does not say, the device's end decides.
    var link = LinkParameters(attMTU: 517, rssi: 20)
    if let said = arguments[RadioOptions.senderLink] {
      if let key = ["phy", "interval", "timeout"].first(where: said.keys.contains) {
        throw UsageError.notApplicable(
          "--link \(key)", "the device's end decides it: give it to bluehaul receive")
      }
      let base = link
      link = said.parameters
      if !said.keys.contains("mtu") { link.attMTU = base.attMTU }
      if !said.keys.contains("rssi") { link.rssi = base.rssi }
    }
    let faults = try plan(arguments).resolved(totalBytes: Int(clamping: totalBytes))
    return RadioRequest(
      words: try chosen(arguments[RadioOptions.radio] ?? words, invocation),
      name: "bluehaul-\(ProcessInfo.processInfo.processIdentifier)", link: link, faults: faults,
      clock: .realTime, seed: 1, capture: try RadioOptions.capture(arguments, printer: invocation.printer))
  }

  /// The radio of a device.
  static func device(_ invocation: Invocation, name: String) throws -> RadioRequest {
    let arguments = invocation.arguments
    let faults = try plan(arguments)
    if faults.faults.contains(where: { $0.kind.isOfSender }) {
      throw UsageError.notApplicable(
        "--fault late-ready or lost-ready", "it happens in the sender's process: give it to bluehaul push")
    }
    return RadioRequest(
      words: try chosen(arguments[RadioOptions.radio], invocation), name: name,
      link: arguments[RadioOptions.link]?.parameters ?? LinkParameters(), faults: faults,
      clock: (arguments[RadioOptions.sharedClock] ?? .real).mode, seed: arguments[RadioOptions.seed] ?? 1,
      capture: try RadioOptions.capture(arguments, printer: invocation.printer))
  }

  /// The faults of a link between processes. There is no flash that could be slow or damaged.
  private static func plan(_ arguments: ParsedArguments) throws -> FaultPlan {
    let words = arguments.all(RadioOptions.fault).map(\.words)
    let plan = try FaultPlan(parsing: words.joined(separator: ","))
    if plan.eraseTime != nil || plan.faults.contains(where: { $0.kind == .corrupt }) {
      throw UsageError.notApplicable(
        "--fault slow-erase or corrupt", "only the flash of bluehaul demo can be slow or damaged")
    }
    return plan
  }

  private static func chosen(_ words: String?, _ invocation: Invocation) throws(TransferError) -> String {
    let variable = RadioOptions.variable
    guard let words = words ?? invocation.environment.variables[variable], !words.isEmpty else {
      throw TransferError(
        .radioUnavailable, "no radio is chosen", advice: "give --radio virtual:DIR, or set \(variable)")
    }
    return words
  }
}

extension RadioRequest {
  /// Makes the radio, or says why there is none.
  func make() throws(TransferError) -> any Radio {
    let directory = words.dropFirst("virtual:".count)
    if directory.contains("?") {
      throw TransferError(
        .invalidArgument, "\(words) has settings behind the folder",
        advice: "say them with --link, --fault and --clock; settings in words are for other programs")
    }
    guard words.hasPrefix("virtual:"), !directory.isEmpty else {
      throw TransferError(
        .radioUnavailable, "\(words) is no radio that this program knows", advice: "give --radio virtual:DIR")
    }
    do throws(VirtualAirError) {
      let radio = try VirtualRadio(
        directory: String(directory), name: name, clock: VirtualClock(clock), link: link, seed: seed,
        faults: faults, capture: capture)
      return radio
    } catch {
      throw TransferError(error)
    }
  }

  /// Makes the radio of a device and takes its name, which no other process may have.
  func makeDevice() throws(TransferError) -> any Radio {
    let radio = try make()
    do throws(VirtualAirError) {
      try (radio as? VirtualRadio)?.takeName()
    } catch {
      throw TransferError(error)
    }
    return radio
  }
}

extension TransferError {
  init(_ error: VirtualAirError) {
    switch error.code {
    case .nameTaken:
      self.init(.locked, error.message, advice: "choose another --name, or end the other process")
    case .badName, .clock: self.init(.invalidArgument, error.message)
    case .directory, .socket:
      self.init(.radioUnavailable, error.message, advice: "choose another folder with --radio")
    }
  }
}

extension UsageError {
  /// An option that would do nothing here.
  static func notApplicable(_ option: String, _ why: String) -> UsageError {
    UsageError("\(option) does not apply here: \(why)", command: "bluehaul")
  }
}

extension Fault.Kind {
  /// Whether it happens in the sender's process.
  fileprivate var isOfSender: Bool {
    switch self {
    case .host(.lateReady), .host(.lostReady): true
    default: false
    }
  }
}
