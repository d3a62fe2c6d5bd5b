internal import Foundation
internal import Radio

/// Reading and writing values (Core Vol 3 Part F 3.4.4 to 3.4.6).
extension GATTServer {
  /// What reading an attribute gives.
  enum Readable {
    case value(Data)
    case ask(LocalAttribute)
    case refused(ATTErrorCode)
  }

  /// Looks at what a read of an attribute would give on this link.
  func readable(_ attribute: AttributeTable.Attribute) -> Readable {
    switch attribute.content {
    case .fixed(let value): return .value(value)
    case .clientConfiguration(let handle):
      var bytes: [UInt8] = []
      bytes.appendUInt16(configuration(of: handle).rawValue)
      return .value(Data(bytes))
    case .value(let characteristic):
      if let code = refusal(
        characteristic.permissions, plain: .read, encrypted: .readEncrypted, .readNotPermitted)
      {
        return .refused(code)
      }
      if let value = characteristic.staticValue { return .value(value) }
      guard let owner = characteristic.owner else { return .refused(.readNotPermitted) }
      return .ask(owner)
    }
  }

  mutating func handleRead(_ opcode: UInt8, _ handle: AttributeHandle, offset: Int, mtu: Int) {
    guard let attribute = table[handle] else { return sendError(opcode, handle, .invalidHandle) }
    switch readable(attribute) {
    case .refused(let code): sendError(opcode, handle, code)
    case .ask(let owner): outputs.append(.read(wait(opcode, handle), owner, offset: offset))
    case .value(let value):
      guard offset <= value.count else { return sendError(opcode, handle, .invalidOffset) }
      let part = Data(value.dropFirst(offset).prefix(mtu - 1))
      send(opcode == ATTOpcode.readRequest ? .readResponse(part) : .readBlobResponse(part))
    }
  }

  /// A Write Command: never answered, also where it is refused.
  mutating func handleCommand(_ handle: AttributeHandle, _ value: Data) {
    guard case .value(let characteristic) = table[handle]?.content, value.count <= ATTLimits.valueLength,
      refusal(characteristic.permissions, plain: .write, encrypted: .writeEncrypted, .writeNotPermitted)
        == nil,
      let owner = characteristic.owner
    else { return }
    let write = ServerWrite(characteristic: owner.id, offset: 0, value: value)
    outputs.append(.write(makeRequestID(), client: owner.client, [write], needsResponse: false))
  }

  mutating func handleWrite(_ handle: AttributeHandle, _ value: Data) {
    let opcode = ATTOpcode.writeRequest
    switch table[handle]?.content {
    case nil: sendError(opcode, handle, .invalidHandle)
    case .fixed: sendError(opcode, handle, .writeNotPermitted)
    case .clientConfiguration(let valueHandle): handleConfiguration(handle, of: valueHandle, value)
    case .value(let characteristic):
      switch writable(characteristic, value.count) {
      case .failure(let code): sendError(opcode, handle, code)
      case .success(let owner):
        let write = ServerWrite(characteristic: owner.id, offset: 0, value: value)
        outputs.append(.write(wait(opcode, handle), client: owner.client, [write], needsResponse: true))
      }
    }
  }

  private mutating func handleConfiguration(
    _ handle: AttributeHandle, of valueHandle: AttributeHandle, _ value: Data
  ) {
    let opcode = ATTOpcode.writeRequest
    guard case .value(let characteristic) = table[valueHandle]?.content else {
      return sendError(opcode, handle, .invalidHandle)
    }
    var reader = ByteReader(Array(value))
    guard value.count == 2, let bits = reader.readUInt16() else {
      return sendError(opcode, handle, .invalidAttributeValueLength)
    }
    let configuration = ClientConfiguration(rawValue: bits)
    let properties = characteristic.properties
    guard configuration.isSubset(of: [.notify, .indicate]),
      properties.contains(.notify) || !configuration.contains(.notify),
      properties.contains(.indicate) || !configuration.contains(.indicate)
    else { return sendError(opcode, handle, .improperlyConfigured) }
    guard isEncrypted || !characteristic.notifyRequiresEncryption || configuration.isEmpty else {
      return sendError(opcode, handle, .insufficientEncryption)
    }
    send(.writeResponse)
    setConfiguration(configuration, of: valueHandle, characteristic)
  }

  mutating func handlePrepare(_ handle: AttributeHandle, _ offset: Int, _ value: Data) {
    let opcode = ATTOpcode.prepareWriteRequest
    guard let attribute = table[handle] else { return sendError(opcode, handle, .invalidHandle) }
    guard case .value(let characteristic) = attribute.content else {
      return sendError(opcode, handle, .writeNotPermitted)
    }
    switch writable(characteristic, value.count) {
    case .failure(let code): sendError(opcode, handle, code)
    case .success(let owner):
      let octets = prepared.reduce(value.count) { $0 + $1.value.count }
      guard prepared.count < Self.prepareQueueLimit, octets <= Self.prepareQueueOctets else {
        return sendError(opcode, handle, .prepareQueueFull)
      }
      prepared.append(PreparedWrite(handle: handle, owner: owner, offset: offset, value: value))
      send(.prepareWriteResponse(handle, offset: UInt16(truncatingIfNeeded: offset), value))
    }
  }

  mutating func handleExecute(_ commits: Bool) {
    let opcode = ATTOpcode.executeWriteRequest
    let queue = prepared
    prepared = []
    guard commits, let first = queue.first else { return send(.executeWriteResponse) }
    // One batch is answered as a unit, so all of it must belong to one client.
    if let other = queue.first(where: { $0.owner.client != first.owner.client }) {
      return sendError(opcode, other.handle, .unlikelyError)
    }
    if let long = queue.first(where: { $0.offset + $0.value.count > ATTLimits.valueLength }) {
      return sendError(
        opcode, long.handle,
        long.offset > ATTLimits.valueLength ? .invalidOffset : .invalidAttributeValueLength)
    }
    // In the order of their arrival, as they are to be written (Core Vol 3 Part F 3.4.6.3).
    let writes = queue.map {
      ServerWrite(characteristic: $0.owner.id, offset: $0.offset, value: $0.value)
    }
    let id = wait(opcode, first.handle)
    outputs.append(.write(id, client: first.owner.client, writes, needsResponse: true))
  }

  private func writable(
    _ characteristic: AttributeTable.Characteristic, _ length: Int
  ) -> Result<LocalAttribute, ATTErrorCode> {
    if let code = refusal(
      characteristic.permissions, plain: .write, encrypted: .writeEncrypted, .writeNotPermitted)
    {
      return .failure(code)
    }
    guard let owner = characteristic.owner else { return .failure(.writeNotPermitted) }
    return length <= ATTLimits.valueLength ? .success(owner) : .failure(.invalidAttributeValueLength)
  }

  /// Why an access is refused on this link, or nil.
  private func refusal(
    _ permissions: GATTPermissions, plain: GATTPermissions, encrypted: GATTPermissions,
    _ notPermitted: ATTErrorCode
  ) -> ATTErrorCode? {
    if permissions.contains(encrypted) { return isEncrypted ? nil : .insufficientEncryption }
    return permissions.contains(plain) ? nil : notPermitted
  }
}
