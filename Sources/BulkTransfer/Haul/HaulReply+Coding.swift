public import Foundation

extension HaulReply {
  /// The octets of the message. Texts are cut to 200 octets.
  public var encoded: Data {
    var writer = MessageWriter()
    switch self {
    case .welcome(let message):
      writer.u8(0x81)
      writer.u8(message.request)
      writer.u8(message.version)
      writer.u16(message.features)
      writer.identifier(message.device)
      writer.u32(message.buffer)
      writer.u8(message.largestSegmentPower)
      writer.u48(message.largestObject)
      writer.u48(message.freeSpace)
      writer.extensions(message.extensions)
    case .accept(let message):
      writer.u8(0x82)
      writer.u8(message.request)
      writer.u8(message.standing.rawValue)
      writer.u16(message.epoch.rawValue)
      writer.u48(message.durable)
      writer.u16(message.room)
      if let coding = message.coding { writer.extensions([coding.encoded]) }
    case .receipt(let message):
      writer.u8(Self.receiptType)
      writer.u8(message.request)
      writer.u16(message.epoch.rawValue)
      writer.u8(message.state.rawValue)
      writer.u48(message.received)
      writer.u48(message.durable)
      writer.u16(message.room)
    case .lost(let message):
      writer.u8(0x84)
      writer.u8(message.request)
      writer.u16(message.epoch.rawValue)
      writer.u48(message.offset)
      writer.u16(message.room)
      writer.u8(message.reason.rawValue)
    case .verified(let message):
      writer.u8(0x85)
      writer.u8(message.request)
      writer.u16(message.index)
      writer.u48(message.size)
      writer.digest(message.sha256)
    case .refused(let message):
      writer.octets([0x86, message.request, message.code.rawValue])
      writer.text(message.text)
    case .failed(let message):
      writer.octets([0x87, message.request, message.code.rawValue])
      writer.text(message.text)
    case .busy(let request, let seconds):
      writer.octets([0x88, request])
      writer.u16(seconds)
    }
    return writer.data
  }

  static let receiptType: UInt8 = 0x83

  /// Reads a message; octets after the known fields are skipped.
  public init(decoding message: Data) throws(HaulCodingError) {
    var reader = MessageReader(message)
    let type = try reader.u8()
    let request = try reader.u8()
    switch type {
    case 0x81:
      self = .welcome(
        Welcome(
          request: request, version: try reader.u8(), features: try reader.u16(),
          device: try reader.octets(HaulRequest.identifierCount), buffer: try reader.u32(),
          largestSegmentPower: try reader.u8(), largestObject: try reader.u48(),
          freeSpace: try reader.u48(), extensions: try reader.extensions()))
    case 0x82:
      self = .accept(
        Accept(
          request: request, standing: try reader.choice("the state of ACCEPT"),
          epoch: Epoch(rawValue: try reader.u16()), durable: try reader.u48(), room: try reader.u16(),
          coding: Accept.Coding(in: reader.extensionsBeforeAnythingElse())))
    case Self.receiptType:
      self = .receipt(
        Receipt(
          request: request, epoch: Epoch(rawValue: try reader.u16()),
          state: try reader.choice("the state of RECEIPT"), received: try reader.u48(),
          durable: try reader.u48(), room: try reader.u16()))
    case 0x84:
      self = .lost(
        Lost(
          request: request, epoch: Epoch(rawValue: try reader.u16()), offset: try reader.u48(),
          room: try reader.u16(), reason: try reader.choice("the reason of LOST")))
    case 0x85:
      self = .verified(
        Verified(
          request: request, index: try reader.u16(), size: try reader.u48(), sha256: try reader.digest()))
    case 0x86:
      self = .refused(
        Refusal(
          request: request, code: HaulRefusalCode(rawValue: try reader.u8()), text: try reader.text()))
    case 0x87:
      self = .failed(
        Failure(
          request: request, code: HaulFailureCode(rawValue: try reader.u8()), text: try reader.text()))
    case 0x88:
      self = .busy(request: request, seconds: try reader.u16())
    default:
      throw .unknownType(type)
    }
  }
}

extension MessageReader {
  /// Reads an octet that has to be one of the cases of an enumeration.
  fileprivate mutating func choice<Choice: RawRepresentable>(
    _ field: String
  ) throws(HaulCodingError) -> Choice where Choice.RawValue == UInt8 {
    let value = try u8()
    guard let choice = Choice(rawValue: value) else { throw .invalidField("\(field) is \(value)") }
    return choice
  }
}
