import CoreBluetooth
import Foundation

/// An error of a callback, as a value.
struct Failure: Error, Hashable, Sendable {
  let domain: String
  let code: Int

  init?(_ error: (any Error)?) {
    guard let error = error as NSError? else { return nil }
    domain = error.domain
    code = error.code
  }
}
