internal import Foundation
internal import Radio

/// Finding attributes (Core Vol 3 Part F 3.4.3, 3.4.4.1, 3.4.4.9).
extension GATTServer {
  mutating func handleDiscovery(_ pdu: ATTPDU, mtu: Int) {
    switch pdu {
    case .findInformationRequest(let range):
      answer(ATTOpcode.findInformationRequest, range) { server, closed in
        server.findInformation(closed, mtu: mtu)
      }
    case .findByTypeValueRequest(let range, let type, let value):
      answer(ATTOpcode.findByTypeValueRequest, range) { server, closed in
        server.findByTypeValue(closed, BluetoothUUID(type), value, mtu: mtu)
      }
    case .readByGroupTypeRequest(let range, let type):
      guard type == GATTType.primaryService || type == GATTType.secondaryService else {
        return sendError(ATTOpcode.readByGroupTypeRequest, range.start, .unsupportedGroupType)
      }
      answer(ATTOpcode.readByGroupTypeRequest, range) { server, closed in
        server.readByGroupType(closed, type, mtu: mtu)
      }
    case .readByTypeRequest(let range, let type): readByType(range, type, mtu: mtu)
    default: break
    }
  }

  private mutating func answer(
    _ opcode: UInt8, _ range: ATTPDU.HandleRange,
    _ find: (Self, ClosedRange<AttributeHandle>) -> ATTPDU?
  ) {
    guard let closed = range.closed else { return sendError(opcode, range.start, .invalidHandle) }
    guard let found = find(self, closed) else { return sendError(opcode, range.start, .attributeNotFound) }
    send(found)
  }

  private func findInformation(_ range: ClosedRange<AttributeHandle>, mtu: Int) -> ATTPDU? {
    var entries: [RemoteDescriptor] = []
    var room = mtu - 2
    let attributes = table.attributes(in: range)
    let isShort = attributes.first?.type.short != nil
    let length = 2 + (isShort ? 2 : 16)
    for attribute in attributes {
      guard (attribute.type.short != nil) == isShort, room >= length else { break }
      entries.append(RemoteDescriptor(handle: attribute.handle, uuid: attribute.type))
      room -= length
    }
    return entries.isEmpty ? nil : .findInformationResponse(entries)
  }

  private func findByTypeValue(
    _ range: ClosedRange<AttributeHandle>, _ type: BluetoothUUID, _ value: Data, mtu: Int
  ) -> ATTPDU? {
    var ranges: [ATTPDU.HandleRange] = []
    for attribute in table.attributes(in: range) where attribute.type == type {
      guard ranges.count < (mtu - 1) / 4 else { break }
      guard case .value(let own) = readable(attribute), own == value else { continue }
      let end = table.service(startingAt: attribute.handle)?.handles.upperBound ?? attribute.handle
      ranges.append(ATTPDU.HandleRange(attribute.handle, end))
    }
    return ranges.isEmpty ? nil : .findByTypeValueResponse(ranges)
  }

  private func readByGroupType(
    _ range: ClosedRange<AttributeHandle>, _ type: BluetoothUUID, mtu: Int
  ) -> ATTPDU? {
    var entries: [ATTPDU.GroupValue] = []
    var room = mtu - 2
    for service in table.services
    where range.contains(service.handles.lowerBound)
      && service.isPrimary == (type == GATTType.primaryService)
    {
      let value = Data(service.uuid.littleEndianBytes)
      guard room >= 4 + value.count, entries.first.map({ $0.value.count == value.count }) ?? true else {
        break
      }
      let handles = ATTPDU.HandleRange(service.handles.lowerBound, service.handles.upperBound)
      entries.append(ATTPDU.GroupValue(handles: handles, value: value))
      room -= 4 + value.count
    }
    return entries.isEmpty ? nil : .readByGroupTypeResponse(entries)
  }

  /// Only the first match may ask its owner or be refused; at a later one of that kind the list just ends.
  private mutating func readByType(_ range: ATTPDU.HandleRange, _ type: BluetoothUUID, mtu: Int) {
    let opcode = ATTOpcode.readByTypeRequest
    guard let closed = range.closed else { return sendError(opcode, range.start, .invalidHandle) }
    var entries: [ATTPDU.AttributeValue] = []
    var room = mtu - 2
    for attribute in table.attributes(in: closed) where attribute.type == type {
      let value: Data
      switch readable(attribute) {
      case .value(let whole): value = Data(whole.prefix(min(mtu - 4, 253)))
      case .refused(let code):
        if entries.isEmpty { return sendError(opcode, attribute.handle, code) }
        return send(.readByTypeResponse(entries))
      case .ask(let owner):
        if entries.isEmpty {
          outputs.append(.read(wait(opcode, attribute.handle), owner, offset: 0))
          return
        }
        return send(.readByTypeResponse(entries))
      }
      guard room >= 2 + value.count, entries.first.map({ $0.value.count == value.count }) ?? true else {
        break
      }
      entries.append(ATTPDU.AttributeValue(handle: attribute.handle, value: value))
      room -= 2 + value.count
    }
    if entries.isEmpty { return sendError(opcode, range.start, .attributeNotFound) }
    send(.readByTypeResponse(entries))
  }
}
