internal import Radio

/// A message between two processes of one virtual air; see docs/virtual-air.md.
enum AirMessage: Hashable, Sendable {
  case hello(version: UInt16, name: String)
  case observe
  case connect(LinkParameters)
  case advertisement(Advertisement, rssi: Int8, isConnectable: Bool)
  case accepted(LinkParameters)
  case refused(Refusal, text: String)
  case frame([UInt8])
  case completed(UInt32)
  case terminate
  case ended(LinkEnd)
  case interval(units: UInt16)
  case parameters(LinkParameters)
  case mtu(UInt16)
  case faults(FaultPlan)

  /// Why a link was refused.
  enum Refusal: UInt8 {
    case notAdvertising = 1
    case alreadyLinked = 2
    case badParameters = 3
  }

  static let version: UInt16 = 1
  static let longestName = 248
  /// Octets of type and body at most.
  static let longestMessage = 65_600

  private static let magic: [UInt8] = Array("BHVA".utf8)

  fileprivate enum Kind: UInt8 {
    case hello = 1
    case observe, connect, advertisement, accepted, refused, frame, completed, terminate, ended, interval,
      parameters, mtu, faults
  }

  private var kind: Kind {
    switch self {
    case .hello: .hello
    case .observe: .observe
    case .connect: .connect
    case .advertisement: .advertisement
    case .accepted: .accepted
    case .refused: .refused
    case .frame: .frame
    case .completed: .completed
    case .terminate: .terminate
    case .ended: .ended
    case .interval: .interval
    case .parameters: .parameters
    case .mtu: .mtu
    case .faults: .faults
    }
  }

  // MARK: Encoding

  /// Appends length, type and body. A message that is longer than the format takes is left out.
  func encode(into buffer: inout [UInt8]) {
    let start = buffer.count
    buffer += [0, 0, 0, 0, kind.rawValue]
    switch self {
    case .hello(let version, let name):
      buffer += Self.magic
      buffer.appendUInt16(version)
      buffer += name.utf8
    case .observe, .terminate: break
    case .connect(let parameters), .accepted(let parameters), .parameters(let parameters):
      buffer += parameters.description.utf8
    case .advertisement(let advertisement, let rssi, let isConnectable):
      buffer += [UInt8(bitPattern: rssi), isConnectable ? 1 : 0]
      AdvertisementFields.append(advertisement, to: &buffer)
    case .refused(let reason, let text):
      buffer.append(reason.rawValue)
      buffer += text.utf8
    case .frame(let frame): buffer += frame
    case .completed(let frames):
      buffer.appendUInt16(UInt16(truncatingIfNeeded: frames))
      buffer.appendUInt16(UInt16(truncatingIfNeeded: frames >> 16))
    case .ended(.supervisionTimeout): buffer.append(0)
    case .ended(.terminated(by: .central)): buffer.append(1)
    case .ended(.terminated(by: .peripheral)): buffer.append(2)
    case .interval(let units): buffer.appendUInt16(units)
    case .mtu(let mtu): buffer.appendUInt16(mtu)
    case .faults(let plan): buffer += plan.description.utf8
    }
    let length = buffer.count - start - 4
    guard length <= Self.longestMessage else { return buffer.removeSubrange(start...) }
    for index in 0..<4 { buffer[start + index] = UInt8(truncatingIfNeeded: length >> (8 * index)) }
  }

  // MARK: Decoding

  /// Reads type and body; throws where they are not a message of this version.
  init(type: UInt8, body: ArraySlice<UInt8>) throws(AirProtocolError) {
    guard let kind = Kind(rawValue: type) else { throw AirProtocolError("unknown message type \(type)") }
    var reader = ByteReader(Array(body))
    switch kind {
    case .hello:
      guard reader.read(4).map({ $0.elementsEqual(Self.magic) }) == true, let version = reader.readUInt16()
      else { throw AirProtocolError("this is not a virtual air") }
      guard (1...Self.longestName).contains(reader.remaining) else {
        throw AirProtocolError("a name has \(reader.remaining) octets")
      }
      self = .hello(version: version, name: try Self.text(reader.readRest()))
    case .observe: self = .observe
    case .connect: self = .connect(try Self.parameters(reader.readRest()))
    case .advertisement:
      guard let rssi = reader.readUInt8(), let flags = reader.readUInt8() else { throw Self.cutShort(kind) }
      let advertisement = try AdvertisementFields.read(&reader)
      self = .advertisement(advertisement, rssi: Int8(bitPattern: rssi), isConnectable: flags & 1 != 0)
    case .accepted: self = .accepted(try Self.parameters(reader.readRest()))
    case .refused:
      guard let code = reader.readUInt8(), let reason = Refusal(rawValue: code) else {
        throw Self.cutShort(kind)
      }
      self = .refused(reason, text: try Self.text(reader.readRest()))
    case .frame:
      guard reader.remaining > 0 else { throw Self.cutShort(kind) }
      self = .frame(Array(reader.readRest()))
    case .completed:
      guard let low = reader.readUInt16(), let high = reader.readUInt16() else { throw Self.cutShort(kind) }
      self = .completed(UInt32(high) << 16 | UInt32(low))
    case .terminate: self = .terminate
    case .ended:
      switch reader.readUInt8() {
      case 0: self = .ended(.supervisionTimeout)
      case 1: self = .ended(.terminated(by: .central))
      case 2: self = .ended(.terminated(by: .peripheral))
      default: throw Self.cutShort(kind)
      }
    case .interval:
      guard let units = reader.readUInt16() else { throw Self.cutShort(kind) }
      self = .interval(units: units)
    case .mtu:
      guard let mtu = reader.readUInt16(), (23...517).contains(mtu) else { throw Self.cutShort(kind) }
      self = .mtu(mtu)
    case .faults: self = .faults(try Self.faults(reader.readRest()))
    case .parameters: self = .parameters(try Self.parameters(reader.readRest()))
    }
    guard reader.remaining == 0 else { throw AirProtocolError("a message of type \(type) is too long") }
  }

  private static func cutShort(_ kind: Kind) -> AirProtocolError {
    AirProtocolError("a message of type \(kind.rawValue) is malformed")
  }

  private static func text(_ bytes: ArraySlice<UInt8>) throws(AirProtocolError) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw AirProtocolError("a text is not UTF-8")
    }
    return text
  }

  private static func faults(_ bytes: ArraySlice<UInt8>) throws(AirProtocolError) -> FaultPlan {
    guard bytes.count <= 8192 else { throw AirProtocolError("a fault plan is too long") }
    let words = try text(bytes)
    do {
      return try FaultPlan(parsing: words)
    } catch {
      throw AirProtocolError("a fault plan is wrong: \(error)")
    }
  }

  private static func parameters(_ bytes: ArraySlice<UInt8>) throws(AirProtocolError) -> LinkParameters {
    guard bytes.count <= 1024 else { throw AirProtocolError("link parameters are too long") }
    let words = try text(bytes)
    do {
      return try LinkParameters(parsing: words)
    } catch {
      throw AirProtocolError("link parameters are wrong: \(error)")
    }
  }
}

/// What a process of the virtual air has sent that no such process sends.
struct AirProtocolError: Error, Hashable, Sendable, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}

/// Cuts a stream of bytes into messages; holds at most one message and what was read with it.
struct AirMessageDecoder: Sendable {
  private var buffer: [UInt8] = []
  private var position = 0

  /// Bytes of a message that is not complete.
  var pendingOctets: Int { buffer.count - position }

  /// Takes bytes as they come.
  mutating func append(_ bytes: some Sequence<UInt8>) {
    if position > 0 {
      buffer.removeFirst(position)
      position = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The next whole message; nil: more bytes are needed.
  mutating func next() throws(AirProtocolError) -> AirMessage? {
    guard buffer.count - position >= 4 else { return nil }
    let length = (0..<4).reduce(0) { $0 | Int(buffer[position + $1]) << (8 * $1) }
    guard (1...AirMessage.longestMessage).contains(length) else {
      throw AirProtocolError("a message of \(length) octets")
    }
    guard buffer.count - position >= 4 + length else { return nil }
    let body = buffer[position + 5..<position + 4 + length]
    let message = try AirMessage(type: buffer[position + 4], body: body)
    position += 4 + length
    return message
  }
}
