internal import Foundation
internal import Radio

extension ATTPDU {
  /// The basic frame that carries the packet. Header and value are written once, into one array.
  var frame: [UInt8] {
    switch self {
    case .writeCommand(let handle, let value):
      Self.frame(ATTOpcode.writeCommand, handle, value, valueLength: value.count)
    case .notification(let handle, let value):
      Self.frame(ATTOpcode.notification, handle, value, valueLength: value.count)
    default: L2CAPFrame.make(cid: ChannelIdentifier.attributeProtocol, capacity: 32) { append(to: &$0) }
    }
  }

  /// A frame with a packet of opcode, handle and the first octets of a value: the path of bulk data.
  static func frame(_ opcode: UInt8, _ handle: AttributeHandle, _ value: Data, valueLength: Int) -> [UInt8] {
    L2CAPFrame.make(cid: ChannelIdentifier.attributeProtocol, capacity: 3 + valueLength) { bytes in
      bytes.append(opcode)
      bytes.appendUInt16(handle)
      bytes.append(contentsOf: valueLength == value.count ? value : value.prefix(valueLength))
    }
  }

  private func append(to bytes: inout [UInt8]) {
    switch self {
    case .errorResponse(let opcode, let handle, let code):
      bytes.append(ATTOpcode.errorResponse)
      bytes.append(opcode)
      bytes.appendUInt16(handle)
      bytes.append(code.rawValue)
    case .exchangeMTURequest(let mtu):
      bytes.append(ATTOpcode.exchangeMTURequest)
      bytes.appendUInt16(mtu)
    case .exchangeMTUResponse(let mtu):
      bytes.append(ATTOpcode.exchangeMTUResponse)
      bytes.appendUInt16(mtu)
    case .findInformationRequest, .findInformationResponse, .findByTypeValueRequest, .findByTypeValueResponse:
      appendFind(to: &bytes)
    case .readByTypeRequest, .readByTypeResponse, .readRequest, .readResponse, .readBlobRequest,
      .readBlobResponse, .readByGroupTypeRequest, .readByGroupTypeResponse:
      appendRead(to: &bytes)
    case .writeRequest, .writeResponse, .prepareWriteRequest, .prepareWriteResponse, .executeWriteRequest,
      .executeWriteResponse, .writeCommand:
      appendWrite(to: &bytes)
    case .notification(let handle, let value):
      Self.append(ATTOpcode.notification, handle, value, to: &bytes)
    case .indication(let handle, let value): Self.append(ATTOpcode.indication, handle, value, to: &bytes)
    case .confirmation: bytes.append(ATTOpcode.confirmation)
    }
  }

  private func appendFind(to bytes: inout [UInt8]) {
    switch self {
    case .findInformationRequest(let range):
      bytes.append(ATTOpcode.findInformationRequest)
      Self.append(range, to: &bytes)
    case .findInformationResponse(let entries):
      bytes.append(ATTOpcode.findInformationResponse)
      bytes.append(entries.first?.uuid.short == nil ? 0x02 : 0x01)
      for entry in entries {
        bytes.appendUInt16(entry.handle)
        bytes.append(contentsOf: entry.uuid.littleEndianBytes)
      }
    case .findByTypeValueRequest(let range, let type, let value):
      bytes.append(ATTOpcode.findByTypeValueRequest)
      Self.append(range, to: &bytes)
      bytes.appendUInt16(type)
      bytes.append(contentsOf: value)
    case .findByTypeValueResponse(let ranges):
      bytes.append(ATTOpcode.findByTypeValueResponse)
      for range in ranges { Self.append(range, to: &bytes) }
    default: break
    }
  }

  private func appendRead(to bytes: inout [UInt8]) {
    switch self {
    case .readByTypeRequest(let range, let type):
      bytes.append(ATTOpcode.readByTypeRequest)
      Self.append(range, to: &bytes)
      bytes.append(contentsOf: type.littleEndianBytes)
    case .readByTypeResponse(let entries):
      bytes.append(ATTOpcode.readByTypeResponse)
      bytes.append(UInt8(truncatingIfNeeded: 2 + (entries.first?.value.count ?? 0)))
      for entry in entries {
        bytes.appendUInt16(entry.handle)
        bytes.append(contentsOf: entry.value)
      }
    case .readRequest(let handle):
      bytes.append(ATTOpcode.readRequest)
      bytes.appendUInt16(handle)
    case .readResponse(let value):
      bytes.append(ATTOpcode.readResponse)
      bytes.append(contentsOf: value)
    case .readBlobRequest(let handle, let offset):
      bytes.append(ATTOpcode.readBlobRequest)
      bytes.appendUInt16(handle)
      bytes.appendUInt16(offset)
    case .readBlobResponse(let value):
      bytes.append(ATTOpcode.readBlobResponse)
      bytes.append(contentsOf: value)
    case .readByGroupTypeRequest(let range, let type):
      bytes.append(ATTOpcode.readByGroupTypeRequest)
      Self.append(range, to: &bytes)
      bytes.append(contentsOf: type.littleEndianBytes)
    case .readByGroupTypeResponse(let entries):
      bytes.append(ATTOpcode.readByGroupTypeResponse)
      bytes.append(UInt8(truncatingIfNeeded: 4 + (entries.first?.value.count ?? 0)))
      for entry in entries {
        Self.append(entry.handles, to: &bytes)
        bytes.append(contentsOf: entry.value)
      }
    default: break
    }
  }

  private func appendWrite(to bytes: inout [UInt8]) {
    switch self {
    case .writeRequest(let handle, let value): Self.append(ATTOpcode.writeRequest, handle, value, to: &bytes)
    case .writeResponse: bytes.append(ATTOpcode.writeResponse)
    case .prepareWriteRequest(let handle, let offset, let value):
      bytes.append(ATTOpcode.prepareWriteRequest)
      bytes.appendUInt16(handle)
      bytes.appendUInt16(offset)
      bytes.append(contentsOf: value)
    case .prepareWriteResponse(let handle, let offset, let value):
      bytes.append(ATTOpcode.prepareWriteResponse)
      bytes.appendUInt16(handle)
      bytes.appendUInt16(offset)
      bytes.append(contentsOf: value)
    case .executeWriteRequest(let commits):
      bytes.append(ATTOpcode.executeWriteRequest)
      bytes.append(commits ? 0x01 : 0x00)
    case .executeWriteResponse: bytes.append(ATTOpcode.executeWriteResponse)
    case .writeCommand(let handle, let value): Self.append(ATTOpcode.writeCommand, handle, value, to: &bytes)
    default: break
    }
  }

  private static func append(
    _ opcode: UInt8, _ handle: AttributeHandle, _ value: Data, to bytes: inout [UInt8]
  ) {
    bytes.append(opcode)
    bytes.appendUInt16(handle)
    bytes.append(contentsOf: value)
  }

  private static func append(_ range: HandleRange, to bytes: inout [UInt8]) {
    bytes.appendUInt16(range.start)
    bytes.appendUInt16(range.end)
  }
}
