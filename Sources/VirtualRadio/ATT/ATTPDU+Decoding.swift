internal import Foundation
internal import Radio

extension ATTPDU {
  /// What is wrong with a packet; the opcode lets a server answer a request that it does not understand.
  enum DecodingError: Error, Hashable {
    case empty
    case unknownOpcode(UInt8)
    case malformed(opcode: UInt8)
  }

  /// Reads the payload of a basic frame on the ATT channel.
  init(frame: [UInt8]) throws(DecodingError) {
    var reader = ByteReader(frame, from: L2CAPFrame.headerLength)
    guard let opcode = reader.readUInt8() else { throw .empty }
    let pdu: ATTPDU?
    switch opcode {
    case ATTOpcode.errorResponse, ATTOpcode.exchangeMTURequest, ATTOpcode.exchangeMTUResponse,
      ATTOpcode.findInformationRequest, ATTOpcode.findInformationResponse,
      ATTOpcode.findByTypeValueRequest, ATTOpcode.findByTypeValueResponse:
      pdu = Self.readBasics(opcode, &reader)
    case ATTOpcode.readByTypeRequest, ATTOpcode.readByTypeResponse, ATTOpcode.readRequest,
      ATTOpcode.readResponse, ATTOpcode.readBlobRequest, ATTOpcode.readBlobResponse,
      ATTOpcode.readByGroupTypeRequest, ATTOpcode.readByGroupTypeResponse:
      pdu = Self.readReads(opcode, &reader)
    case ATTOpcode.writeRequest, ATTOpcode.writeResponse, ATTOpcode.prepareWriteRequest,
      ATTOpcode.prepareWriteResponse, ATTOpcode.executeWriteRequest, ATTOpcode.executeWriteResponse,
      ATTOpcode.notification, ATTOpcode.indication, ATTOpcode.confirmation, ATTOpcode.writeCommand:
      pdu = Self.readWrites(opcode, &reader)
    default: throw .unknownOpcode(opcode)
    }
    guard let pdu, reader.remaining == 0 else { throw .malformed(opcode: opcode) }
    self = pdu
  }

  private static func readBasics(_ opcode: UInt8, _ reader: inout ByteReader) -> ATTPDU? {
    switch opcode {
    case ATTOpcode.errorResponse:
      guard let failed = reader.readUInt8(), let handle = reader.readUInt16(), let code = reader.readUInt8()
      else { return nil }
      return .errorResponse(opcode: failed, handle: handle, ATTErrorCode(rawValue: code))
    case ATTOpcode.exchangeMTURequest: return reader.readUInt16().map { .exchangeMTURequest($0) }
    case ATTOpcode.exchangeMTUResponse: return reader.readUInt16().map { .exchangeMTUResponse($0) }
    case ATTOpcode.findInformationRequest: return readRange(&reader).map { .findInformationRequest($0) }
    case ATTOpcode.findInformationResponse: return readInformation(&reader)
    case ATTOpcode.findByTypeValueRequest:
      guard let range = readRange(&reader), let type = reader.readUInt16() else { return nil }
      return .findByTypeValueRequest(range, type: type, value: Data(reader.readRest()))
    case ATTOpcode.findByTypeValueResponse:
      guard reader.remaining > 0 else { return nil }
      var ranges: [HandleRange] = []
      while let range = readRange(&reader) { ranges.append(range) }
      return .findByTypeValueResponse(ranges)
    default: return nil
    }
  }

  private static func readReads(_ opcode: UInt8, _ reader: inout ByteReader) -> ATTPDU? {
    switch opcode {
    case ATTOpcode.readByTypeRequest:
      guard let range = readRange(&reader), let type = readType(&reader) else { return nil }
      return .readByTypeRequest(range, type)
    case ATTOpcode.readByTypeResponse:
      guard let length = reader.readUInt8(), length >= 2, reader.remaining > 0 else { return nil }
      var entries: [AttributeValue] = []
      while reader.remaining >= Int(length), let handle = reader.readUInt16(),
        let value = reader.read(Int(length) - 2)
      {
        entries.append(AttributeValue(handle: handle, value: Data(value)))
      }
      return .readByTypeResponse(entries)
    case ATTOpcode.readRequest: return reader.readUInt16().map { .readRequest($0) }
    case ATTOpcode.readResponse: return .readResponse(Data(reader.readRest()))
    case ATTOpcode.readBlobRequest:
      guard let handle = reader.readUInt16(), let offset = reader.readUInt16() else { return nil }
      return .readBlobRequest(handle, offset: offset)
    case ATTOpcode.readBlobResponse: return .readBlobResponse(Data(reader.readRest()))
    case ATTOpcode.readByGroupTypeRequest:
      guard let range = readRange(&reader), let type = readType(&reader) else { return nil }
      return .readByGroupTypeRequest(range, type)
    case ATTOpcode.readByGroupTypeResponse:
      guard let length = reader.readUInt8(), length >= 4, reader.remaining > 0 else { return nil }
      var entries: [GroupValue] = []
      while reader.remaining >= Int(length), let handles = readRange(&reader),
        let value = reader.read(Int(length) - 4)
      {
        entries.append(GroupValue(handles: handles, value: Data(value)))
      }
      return .readByGroupTypeResponse(entries)
    default: return nil
    }
  }

  private static func readWrites(_ opcode: UInt8, _ reader: inout ByteReader) -> ATTPDU? {
    switch opcode {
    case ATTOpcode.writeResponse: return .writeResponse
    case ATTOpcode.executeWriteResponse: return .executeWriteResponse
    case ATTOpcode.confirmation: return .confirmation
    case ATTOpcode.executeWriteRequest:
      guard let flags = reader.readUInt8(), flags <= 1 else { return nil }
      return .executeWriteRequest(commits: flags == 1)
    default: break
    }
    guard let handle = reader.readUInt16() else { return nil }
    switch opcode {
    case ATTOpcode.prepareWriteRequest, ATTOpcode.prepareWriteResponse:
      guard let offset = reader.readUInt16() else { return nil }
      let value = Data(reader.readRest())
      return opcode == ATTOpcode.prepareWriteRequest
        ? .prepareWriteRequest(handle, offset: offset, value)
        : .prepareWriteResponse(handle, offset: offset, value)
    case ATTOpcode.writeRequest: return .writeRequest(handle, Data(reader.readRest()))
    case ATTOpcode.writeCommand: return .writeCommand(handle, Data(reader.readRest()))
    case ATTOpcode.notification: return .notification(handle, Data(reader.readRest()))
    case ATTOpcode.indication: return .indication(handle, Data(reader.readRest()))
    default: return nil
    }
  }

  private static func readInformation(_ reader: inout ByteReader) -> ATTPDU? {
    guard let format = reader.readUInt8(), format == 1 || format == 2, reader.remaining > 0 else {
      return nil
    }
    let length = format == 1 ? 2 : 16
    var entries: [RemoteDescriptor] = []
    while reader.remaining >= 2 + length, let handle = reader.readUInt16(), let bytes = reader.read(length),
      let uuid = BluetoothUUID(littleEndian: bytes)
    {
      entries.append(RemoteDescriptor(handle: handle, uuid: uuid))
    }
    return .findInformationResponse(entries)
  }

  /// A type of 2 or 16 octets to the end of the packet: ATT has no 32-bit form.
  private static func readType(_ reader: inout ByteReader) -> BluetoothUUID? {
    guard reader.remaining == 2 || reader.remaining == 16 else { return nil }
    return BluetoothUUID(littleEndian: reader.readRest())
  }

  private static func readRange(_ reader: inout ByteReader) -> HandleRange? {
    guard reader.remaining >= 4, let start = reader.readUInt16(), let end = reader.readUInt16() else {
      return nil
    }
    return HandleRange(start, end)
  }
}
