internal import Foundation
internal import Radio

/// An advertisement as fields with a two-octet length; see docs/virtual-air.md.
enum AdvertisementFields {
  private enum Field: UInt8 {
    case services16 = 0x03
    case services128 = 0x07
    case localName = 0x09
    case txPower = 0x0A
    case solicited16 = 0x14
    case solicited128 = 0x15
    case serviceData16 = 0x16
    case serviceData128 = 0x21
    case overflow16 = 0xF0
    case overflow128 = 0xF1
    case manufacturerData = 0xFF
  }

  /// UUIDs that an advertisement may name; more than real ones hold by far.
  private static let mostUUIDs = 1024

  static func append(_ advertisement: Advertisement, to buffer: inout [UInt8]) {
    func append(_ field: Field, _ data: some Collection<UInt8>) {
      guard data.count < 0xFFFF else { return }
      buffer.appendUInt16(UInt16(data.count + 1))
      buffer.append(field.rawValue)
      buffer += data
    }
    func append(_ uuids: [BluetoothUUID], _ short: Field, _ long: Field) {
      let shortOnes = uuids.filter { $0.short != nil }
      let longOnes = uuids.filter { $0.short == nil }
      if !shortOnes.isEmpty { append(short, shortOnes.flatMap(\.littleEndianBytes)) }
      if !longOnes.isEmpty { append(long, longOnes.flatMap(\.littleEndianBytes)) }
    }
    append(advertisement.services, .services16, .services128)
    append(advertisement.solicitedServices, .solicited16, .solicited128)
    append(advertisement.overflowServices, .overflow16, .overflow128)
    if let name = advertisement.localName { append(.localName, Array(name.utf8)) }
    if let power = advertisement.txPower { append(.txPower, [UInt8(bitPattern: Int8(clamping: power))]) }
    for (uuid, data) in advertisement.serviceData.sorted(by: { $0.key.description < $1.key.description }) {
      append(uuid.short != nil ? .serviceData16 : .serviceData128, uuid.littleEndianBytes + data)
    }
    if let data = advertisement.manufacturerData { append(.manufacturerData, data) }
  }

  static func read(_ reader: inout ByteReader) throws(AirProtocolError) -> Advertisement {
    var advertisement = Advertisement()
    while reader.remaining > 0 {
      guard let length = reader.readUInt16(), length > 0, let type = reader.readUInt8(),
        let data = reader.read(Int(length) - 1)
      else { throw AirProtocolError("an advertisement is cut short") }
      guard let field = Field(rawValue: type) else { continue }
      switch field {
      case .services16: try append(data, 2, to: &advertisement.services)
      case .services128: try append(data, 16, to: &advertisement.services)
      case .solicited16: try append(data, 2, to: &advertisement.solicitedServices)
      case .solicited128: try append(data, 16, to: &advertisement.solicitedServices)
      case .overflow16: try append(data, 2, to: &advertisement.overflowServices)
      case .overflow128: try append(data, 16, to: &advertisement.overflowServices)
      case .localName: advertisement.localName = String(decoding: data, as: UTF8.self)
      case .txPower: advertisement.txPower = data.first.map { Int(Int8(bitPattern: $0)) }
      case .serviceData16: try appendServiceData(data, 2, to: &advertisement)
      case .serviceData128: try appendServiceData(data, 16, to: &advertisement)
      case .manufacturerData: advertisement.manufacturerData = Data(data)
      }
    }
    return advertisement
  }

  private static func append(
    _ data: ArraySlice<UInt8>, _ size: Int, to uuids: inout [BluetoothUUID]
  ) throws(AirProtocolError) {
    guard data.count % size == 0, uuids.count + data.count / size <= mostUUIDs else {
      throw AirProtocolError("an advertisement has a list of UUIDs of \(data.count) octets")
    }
    for start in stride(from: data.startIndex, to: data.endIndex, by: size) {
      if let uuid = BluetoothUUID(littleEndian: data[start..<start + size]) { uuids.append(uuid) }
    }
  }

  private static func appendServiceData(
    _ data: ArraySlice<UInt8>, _ size: Int, to advertisement: inout Advertisement
  ) throws(AirProtocolError) {
    guard data.count >= size, let uuid = BluetoothUUID(littleEndian: data.prefix(size)) else {
      throw AirProtocolError("an advertisement has service data of \(data.count) octets")
    }
    advertisement.serviceData[uuid] = Data(data.dropFirst(size))
  }
}
