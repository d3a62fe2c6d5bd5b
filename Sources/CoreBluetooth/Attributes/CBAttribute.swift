public import Foundation
internal import Synchronization

/// A service, characteristic or descriptor.
// Sendable: what changes is behind locks or atomic.
open class CBAttribute: NSObject, @unchecked Sendable {
  private let type: CBUUID
  /// The link over which the attribute was discovered; nil for a local one.
  let link: LinkToken?
  private let invalidated = Atomic<Bool>(false)

  init(_cb type: CBUUID, link: LinkToken?) {
    self.type = type
    self.link = link
    super.init()
  }

  /// The attribute's type.
  open var uuid: CBUUID { type }

  /// Whether requests to the attribute make sense on the link `token`.
  func isValid(on token: LinkToken?) -> Bool {
    guard let link else { return false }
    return link === token && !invalidated.load(ordering: .relaxed)
  }

  /// Marks the attribute as gone from the peer's database.
  func invalidate() { invalidated.store(true, ordering: .relaxed) }
}

/// Stands for one link, so that attributes of an earlier one can be told apart.
final class LinkToken: Sendable {}
