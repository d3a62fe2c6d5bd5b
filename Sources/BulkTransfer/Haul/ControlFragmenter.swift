public import Foundation

/// Cuts control messages into fragments for the GATT carrier, each to the limit of its own moment.
///
/// Messages queue here while the carrier is busy. The queue is bounded: a newer receipt that answers nothing takes the place of an older
/// one, and beyond ``capacity`` the oldest message is dropped (the repetition of requests repairs that).
public struct ControlFragmenter: Sendable {
  /// Messages that may wait.
  public static let capacity = 32
  static let firstFlag: UInt8 = 0x80
  static let lastFlag: UInt8 = 0x40
  static let numberMask: UInt8 = 0x3F

  private var waiting: [Data] = []
  /// The message under way and how many of its octets have gone.
  private var current: (message: Data, sent: Int)?
  private var number: UInt8 = 0

  public init() {}

  /// Whether nothing waits.
  public var isEmpty: Bool { current == nil && waiting.isEmpty }

  /// Adds a message of 1...512 octets.
  public mutating func enqueue(_ message: Data) {
    if Self.isUnsolicitedReceipt(message) { waiting.removeAll(where: Self.isUnsolicitedReceipt) }
    if waiting.count >= Self.capacity { waiting.removeFirst() }
    waiting.append(message)
  }

  /// The next fragment.
  ///
  /// - Parameter limit: octets that the link takes in one write or notification now (ATT MTU - 3).
  /// - Returns: nil if nothing waits, or if the limit leaves no room beside the header.
  public mutating func next(limit: Int) -> Data? {
    guard limit >= 2 else { return nil }
    if current == nil, !waiting.isEmpty { current = (waiting.removeFirst(), 0) }
    guard let (message, sent) = current else { return nil }
    let body = message.dropFirst(sent).prefix(limit - 1)
    let isLast = sent + body.count == message.count
    var header = number
    if sent == 0 { header |= Self.firstFlag }
    if isLast { header |= Self.lastFlag }
    number = (number + 1) & Self.numberMask
    current = isLast ? nil : (message, sent + body.count)
    return Data([header]) + body
  }

  /// Whether a message is a receipt that answers nothing, which a newer one makes void.
  static func isUnsolicitedReceipt(_ message: Data) -> Bool {
    message.first == HaulReply.receiptType && message.dropFirst().first == 0
  }
}

/// Puts control messages together from the fragments of the GATT carrier.
///
/// Holds at most one message. A fragment that does not go on where the last one ended drops that message.
public struct ControlAssembler: Sendable {
  /// The longest message in octets.
  public static let messageLimit = 512

  /// What a fragment led to.
  public enum Outcome: Hashable, Sendable {
    /// More fragments have to follow.
    case incomplete
    /// A whole message.
    case message(Data)
    /// The fragment, or what it should have continued, was dropped.
    case dropped
    /// The message became longer than the limit and was dropped: the peer breaks the protocol.
    case tooLong
  }

  /// The message under way and the number that its next fragment has to carry.
  private var partial: (message: Data, next: UInt8)?

  public init() {}

  /// Takes one write or notification.
  public mutating func receive(_ fragment: Data) -> Outcome {
    guard let header = fragment.first else { return .dropped }
    let number = header & ControlFragmenter.numberMask
    let body = fragment.dropFirst()
    var message: Data
    if header & ControlFragmenter.firstFlag != 0 {
      message = Data(body)
    } else {
      guard let begun = partial, begun.next == number else {
        partial = nil
        return .dropped
      }
      message = begun.message
      message.append(body)
    }
    partial = nil
    guard message.count <= Self.messageLimit else { return .tooLong }
    guard header & ControlFragmenter.lastFlag == 0 else {
      return message.isEmpty ? .dropped : .message(message)
    }
    partial = (message, (number + 1) & ControlFragmenter.numberMask)
    return .incomplete
  }
}
