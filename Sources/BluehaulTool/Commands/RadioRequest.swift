internal import BulkTransfer
internal import Foundation
internal import Radio
internal import VirtualRadio

/// What a command wants from a radio, after all options were checked.
struct RadioRequest: Sendable {
  /// The radio that was chosen.
  let choice: ChosenRadio
  /// How the adapter is called.
  let name: String
  let link: LinkParameters
  let faults: FaultPlan
  let clock: VirtualClock.Mode
  let seed: UInt64
  let capture: BTSnoopWriter?

  /// The words that chose the radio.
  var words: String { choice.words }

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
      choice: try chosen(arguments[RadioOptions.radio] ?? words, invocation),
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
      choice: try chosen(arguments[RadioOptions.radio], invocation), name: name,
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

  /// The words of the command line, else of the environment, else those for this host's own Bluetooth.
  private static func chosen(_ words: String?, _ invocation: Invocation) throws -> ChosenRadio {
    let said =
      words ?? invocation.environment.variables[RadioOptions.variable].flatMap { $0.isEmpty ? nil : $0 }
    let radio = ChosenRadio(words: said ?? "bluez", isSaid: said != nil)
    guard case .bluez = try radio.kind else { return radio }
    for option in RadioOptions.simulationOnly where invocation.arguments.options[option] != nil {
      throw UsageError.notApplicable(
        "--\(option)",
        option == RadioOptions.capture.declaration.name
          ? "record the links of a host with btmon -w FILE" : "\(radio.words) is no simulation")
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
