internal import Foundation

/// What moves a sender session's bytes; lives on the queue of its Core Bluetooth manager.
///
/// From within ``send(control:)`` and ``pump(_:)`` it may tell ``SenderCarrierEvent/control(_:)`` and ``SenderCarrierEvent/ready``, and never
/// ``SenderCarrierEvent/lost(_:)``: what a session wants is carried out one action after the other, and the end of its carrier would take
/// those that are left with it, such as that everything was verified. An end that shows in such a call is told in a later turn of the queue.
protocol SenderCarrier: AnyObject {
  /// Which one it is.
  var kind: CarrierKind { get }

  /// Queues a control message.
  func send(control message: Data)

  /// Takes packets from `next`, each with the limit of its moment, until the carrier is full or nil comes back.
  ///
  /// - Returns: true where it stopped because it is full: then it will be ready again.
  func pump(_ next: (_ limit: Int) -> Record?) -> Bool

  /// Ends the use of the carrier; nothing is told after it.
  func close()
}

/// What a carrier tells whoever drives the session.
enum SenderCarrierEvent: Sendable {
  /// A whole control message has come.
  case control(Data)
  /// There may be room for data again.
  case ready
  /// It is gone, for this reason.
  case lost(String)
}
