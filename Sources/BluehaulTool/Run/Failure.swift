internal import BulkTransfer

/// The error that ends a run: what happened, what to do, and the exit code.
struct Failure: Hashable, Sendable {
  /// A stable word, as it appears in JSON.
  let code: String
  let message: String
  let advice: String?
  let exitCode: ExitCode

  init(code: String, message: String, advice: String?, exitCode: ExitCode) {
    self.code = code
    self.message = Printable.text(message, limit: 600)
    // It may be a command to run, with any name and any path: half of one is of no use.
    self.advice = advice.map { Printable.text($0, limit: 16384) }
    self.exitCode = exitCode
  }

  /// One line that says what happened, and one that says what to do.
  var text: String { "bluehaul: \(message)\n" + (advice.map { "\($0)\n" } ?? "") }

  /// Reads any error that a command throws.
  init(_ error: any Error) {
    switch error {
    case let error as UsageError:
      self.init(code: "usage", message: error.message, advice: error.advice, exitCode: .usage)
    case let error as TransferError:
      self.init(
        code: error.code.rawValue, message: error.message, advice: error.adviceWithOption,
        exitCode: ExitCode(for: error.code))
    case let error as Failure:
      self = error
    case is CancellationError:
      self.init(code: "cancelled", message: "interrupted", advice: nil, exitCode: .interrupted)
    default:
      self.init(
        code: "internal", message: "unexpected error: \(error)", advice: "please report this as a fault",
        exitCode: .internalError)
    }
  }
}

extension Failure: Error {}

extension TransferError {
  /// The advice of the engine with the option that does it.
  var adviceWithOption: String? {
    guard let advice, let remedy else { return advice }
    let option =
      switch remedy {
      case .takeAsItIs: TransferOptions.raw.declaration.usage
      case .chooseAddresses(let range): "--\(TransferOptions.range.declaration.name) \(range)"
      case .chooseRadio: RadioOptions.radio.declaration.usage
      case .chooseCarrier: "--\(TransferOptions.via.declaration.name) \(CarrierChoice.automatic.rawValue)"
      }
    return "\(advice) (\(option))"
  }
}

extension ExitCode {
  /// The exit code of a kind of failure.
  init(for code: TransferError.Code) {
    switch code {
    case .unusableFile, .malformedFile: self = .badFile
    case .invalidArgument, .ambiguousDevice: self = .usage
    case .storage, .diskFull, .damagedState: self = .localStorage
    case .locked: self = .locked
    case .radioUnavailable, .deviceNotFound: self = .notFound
    case .disconnected, .timedOut: self = .linkLost
    case .unsupportedDevice, .refused, .deviceStorage, .protocolViolation, .objectTooLarge,
      .nameNotAcceptable, .nameTaken:
      self = .refused
    case .verificationFailed: self = .verificationFailed
    case .cancelled: self = .interrupted
    default: self = .internalError
    }
  }
}
