internal import Foundation

/// The extension by which HELLO brings the first OFFER along, and WELCOME says that it was taken: one question and one answer instead of
/// two, each of which costs two connection intervals.
enum OfferExtension {
  static let type: UInt8 = 0x02

  /// In WELCOME: the offer counts, and its answer follows.
  static let taken = HaulExtension(type: type, value: [])

  /// In HELLO; nil where the message does not fit an extension.
  static func bringing(_ message: Data) -> HaulExtension? {
    message.count <= Int(UInt8.max) ? HaulExtension(type: type, value: Array(message)) : nil
  }

  /// What HELLO has brought; nil where that is nothing, or nothing that can be read.
  static func offer(in extensions: [HaulExtension]) -> HaulRequest.Offer? {
    guard let found = extensions.first(where: { $0.type == type }),
      case .offer(let offer) = try? HaulRequest(decoding: Data(found.value)), offer.request != 0
    else { return nil }
    return offer
  }

  static func isTaken(_ extensions: [HaulExtension]) -> Bool { extensions.contains { $0.type == type } }
}
