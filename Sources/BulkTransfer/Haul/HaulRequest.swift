public import Foundation

/// A control message from the sender to the receiver.
public enum HaulRequest: Hashable, Sendable {
  case hello(Hello)
  case offer(Offer)
  case query(request: UInt8)
  case rewind(request: UInt8)
  case cancel(request: UInt8, reason: UInt8)
  case close(request: UInt8)

  /// Opens a session.
  public struct Hello: Hashable, Sendable {
    public var request: UInt8
    public var lowestVersion: UInt8
    public var highestVersion: UInt8
    public var features: UInt16
    /// Random; distinguishes this session from all others.
    public var session: UInt64
    public var extensions: [HaulExtension]

    public init(
      request: UInt8, lowestVersion: UInt8, highestVersion: UInt8, features: UInt16, session: UInt64,
      extensions: [HaulExtension] = []
    ) {
      self.request = request
      self.lowestVersion = lowestVersion
      self.highestVersion = highestVersion
      self.features = features
      self.session = session
      self.extensions = extensions
    }
  }

  /// Offers an object.
  public struct Offer: Hashable, Sendable {
    public var request: UInt8
    /// Whether the receiver discards what it has stored of the object and begins at 0.
    public var discardsStored: Bool
    /// Place of the object in the transfer, from 0.
    public var index: UInt16
    /// Objects in the transfer, at least 1.
    public var count: UInt16
    /// Segment size as a power of two, 12...20.
    public var segmentPower: UInt8
    /// Octets after which the receiver sends a receipt, at least 256.
    public var receiptInterval: UInt32
    /// Size of the object in octets, at least 1.
    public var size: UInt64
    public var sha256: SHA256Digest
    /// Sixteen octets that name the transfer.
    public var transfer: [UInt8]
    /// 1...200 octets of UTF-8.
    public var name: String
    public var extensions: [HaulExtension]

    public init(
      request: UInt8, discardsStored: Bool, index: UInt16, count: UInt16, segmentPower: UInt8,
      receiptInterval: UInt32, size: UInt64, sha256: SHA256Digest, transfer: [UInt8], name: String,
      extensions: [HaulExtension] = []
    ) {
      self.request = request
      self.discardsStored = discardsStored
      self.index = index
      self.count = count
      self.segmentPower = segmentPower
      self.receiptInterval = receiptInterval
      self.size = size
      self.sha256 = sha256
      self.transfer = transfer
      self.name = name
      self.extensions = extensions
    }
  }

  /// The request number, 1...255.
  public var request: UInt8 {
    switch self {
    case .hello(let hello): hello.request
    case .offer(let offer): offer.request
    case .query(let request), .rewind(let request), .cancel(let request, _), .close(let request): request
    }
  }

  /// Number of octets of a transfer identifier and of a device identifier.
  static let identifierCount = 16

  /// The octets of the message. Fields outside their ranges are cut, as in a name that is too long.
  public var encoded: Data {
    var writer = MessageWriter()
    switch self {
    case .hello(let hello):
      writer.u8(Self.helloType)
      writer.u8(hello.request)
      writer.u8(hello.lowestVersion)
      writer.u8(hello.highestVersion)
      writer.u16(hello.features)
      writer.u64(hello.session)
      writer.extensions(hello.extensions)
    case .offer(let offer):
      writer.u8(Self.offerType)
      writer.u8(offer.request)
      writer.u8(offer.discardsStored ? 1 : 0)
      writer.u16(offer.index)
      writer.u16(offer.count)
      writer.u8(offer.segmentPower)
      writer.u32(offer.receiptInterval)
      writer.u48(offer.size)
      writer.digest(offer.sha256)
      writer.identifier(offer.transfer)
      writer.text(offer.name)
      writer.extensions(offer.extensions)
    case .query(let request):
      writer.octets([0x03, request])
    case .rewind(let request):
      writer.octets([0x04, request])
    case .cancel(let request, let reason):
      writer.octets([0x05, request, reason])
    case .close(let request):
      writer.octets([0x06, request])
    }
    return writer.data
  }

  /// Reads a message; octets after the known fields are skipped.
  public init(decoding message: Data) throws(HaulCodingError) {
    var reader = MessageReader(message)
    let type = try reader.u8()
    let request = try reader.u8()
    switch type {
    case Self.helloType:
      self = .hello(try Hello(request, &reader))
    case Self.offerType:
      self = .offer(try Offer(request, &reader))
    case 0x03:
      self = .query(request: request)
    case 0x04:
      self = .rewind(request: request)
    case 0x05:
      self = .cancel(request: request, reason: try reader.u8())
    case 0x06:
      self = .close(request: request)
    default:
      throw .unknownType(type)
    }
  }
}

extension HaulRequest.Hello {
  init(_ request: UInt8, _ reader: inout MessageReader) throws(HaulCodingError) {
    self.init(
      request: request, lowestVersion: try reader.u8(), highestVersion: try reader.u8(),
      features: try reader.u16(), session: try reader.u64(), extensions: try reader.extensions())
  }
}

extension HaulRequest.Offer {
  init(_ request: UInt8, _ reader: inout MessageReader) throws(HaulCodingError) {
    let flags = try reader.u8()
    let index = try reader.u16()
    let count = try reader.u16()
    let segmentPower = try reader.u8()
    let receiptInterval = try reader.u32()
    let size = try reader.u48()
    let sha256 = try reader.digest()
    let transfer = try reader.octets(HaulRequest.identifierCount)
    let nameCount = Int(try reader.u8())
    let nameOctets = try reader.octets(nameCount)
    guard index < count else { throw .invalidField("the object index is \(index) of \(count)") }
    guard SegmentLayout.powers.contains(segmentPower) else {
      throw .invalidField("the segment size is 2 to the power of \(segmentPower)")
    }
    guard receiptInterval >= 256 else { throw .invalidField("the receipt interval is \(receiptInterval)") }
    guard size > 0 else { throw .invalidField("the object is empty") }
    guard (1...200).contains(nameCount), let name = String(validating: nameOctets, as: UTF8.self) else {
      throw .invalidField("the name is not 1 to 200 octets of UTF-8")
    }
    self.init(
      request: request, discardsStored: flags & 1 != 0, index: index, count: count,
      segmentPower: segmentPower, receiptInterval: receiptInterval, size: size, sha256: sha256,
      transfer: transfer, name: name, extensions: try reader.extensions())
  }
}

extension HaulRequest {
  private static let helloType: UInt8 = 0x01
  private static let offerType: UInt8 = 0x02

  /// The request number of a message that is a HELLO, read without decoding the rest; nil for any other.
  static func helloNumber(_ message: Data) -> UInt8? {
    message.first == helloType ? message.dropFirst().first : nil
  }

  /// The same for a message that begins something, a HELLO or an OFFER.
  static func beginningNumber(_ message: Data) -> UInt8? {
    message.first == offerType ? message.dropFirst().first : helloNumber(message)
  }
}
