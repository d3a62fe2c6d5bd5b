internal import BlueZRadio
internal import BulkTransfer
internal import Foundation
internal import Radio
internal import VirtualRadio

/// The words that name a radio.
struct ChosenRadio: Hashable, Sendable {
  /// What the words name.
  enum Kind: Hashable, Sendable {
    /// A simulated air in a folder.
    case virtual(directory: String)
    /// bluetoothd with an adapter; nil: any.
    case bluez(adapter: String?)
  }

  let words: String
  /// False where nobody has chosen, and it is this host's own.
  let isSaid: Bool

  /// Throws where the words name nothing.
  var kind: Kind {
    get throws(TransferError) {
      let parts = words.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      switch (parts.first, parts.dropFirst().first) {
      case ("virtual", let directory?) where !directory.isEmpty:
        guard !directory.contains("?") else {
          throw TransferError(
            .invalidArgument, "\(words) has settings behind the folder",
            advice: "say them with --link, --fault and --clock; settings in words are for other programs")
        }
        return .virtual(directory: directory)
      case ("bluez", let adapter):
        return .bluez(adapter: adapter)
      default:
        throw TransferError(
          .invalidArgument, "\(words) is no radio that this program knows",
          advice: "give --radio bluez, bluez:hci1 or virtual:DIR")
      }
    }
  }
}

extension RadioRequest {
  /// Makes the radio, or says why there is none.
  func make() async throws(TransferError) -> any Radio {
    switch try choice.kind {
    case .bluez(let adapter): return try await hostRadio(adapter)
    case .virtual(let directory):
      do throws(VirtualAirError) {
        return try VirtualRadio(
          directory: directory, name: name, clock: VirtualClock(clock), link: link, seed: seed,
          faults: faults, capture: capture)
      } catch {
        throw TransferError(error)
      }
    }
  }

  /// Makes the radio of a device and takes its name, which no other process may have.
  func makeDevice() async throws(TransferError) -> any Radio {
    let radio = try await make()
    do throws(VirtualAirError) {
      try (radio as? VirtualRadio)?.takeName()
    } catch {
      throw TransferError(error)
    }
    return radio
  }

  /// This host's Bluetooth, if it can be used: what stands in the way is told at once, not after a wait for an adapter.
  private func hostRadio(_ adapter: String?) async throws(TransferError) -> any Radio {
    let radio: BlueZRadio
    do throws(RadioError) {
      radio = try BlueZRadio(adapter: adapter)
    } catch {
      throw TransferError(.invalidArgument, error.message)
    }
    guard let problem = await BlueZRadio.examine(adapter: adapter).first(where: { $0.level == .problem })
    else { return radio }
    let more = choice.isSaid ? "bluehaul doctor tells more" : "or simulate one with --radio virtual:DIR"
    throw TransferError(
      .radioUnavailable, problem.message, advice: problem.advice.map { "\($0); \(more)" } ?? more)
  }
}
