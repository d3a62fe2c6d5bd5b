internal import Foundation
internal import Radio

/// The server half of one bearer (Core Vol 3 Parts F and G). Sans-I/O: packets in, packets and ``Output`` out.
///
/// It answers from the ``AttributeTable`` what it can and asks the owner of a characteristic for the rest. One request is
/// served at a time, as ATT demands of the peer; the table is shared by all links, the state here is of this link alone.
struct GATTServer {
  /// What the server wants done.
  enum Output {
    /// Send a packet.
    case send(ATTPDU)
    /// Ask the owner for a value.
    case read(ServerRequestID, LocalAttribute, offset: Int)
    /// Tell the owner of writes.
    case write(ServerRequestID, client: UInt64, [ServerWrite], needsResponse: Bool)
    case subscribed(LocalAttribute)
    case unsubscribed(LocalAttribute)
    /// The ATT MTU is this from the next packet on.
    case mtuAgreed(Int)
    /// The peer broke a rule after which the bearer cannot go on.
    case terminate(RadioError)
  }

  /// Bounds of the queue of prepared writes: three times what a 512-octet value needs at the smallest MTU.
  static let prepareQueueLimit = 96
  /// As many octets as two long values.
  static let prepareQueueOctets = 2 * ATTLimits.valueLength

  /// A request that waits for its owner.
  struct Pending {
    var id: ServerRequestID
    var opcode: UInt8
    var handle: AttributeHandle
  }

  struct PreparedWrite {
    var handle: AttributeHandle
    var owner: LocalAttribute
    var offset: Int
    var value: Data
  }

  var table: AttributeTable
  let isEncrypted: Bool
  let preferredMTU: Int
  var outputs: [Output] = []
  /// Client configurations of this central, by value handle.
  private(set) var configurations: [AttributeHandle: ClientConfiguration] = [:]
  private(set) var pending: Pending?
  var prepared: [PreparedWrite] = []
  private var lastRequestID: UInt64

  /// Makes the server of a link; it numbers requests from `firstRequestID` on.
  init(table: AttributeTable, isEncrypted: Bool, preferredMTU: Int, firstRequestID: UInt64) {
    self.table = table
    self.isEncrypted = isEncrypted
    self.preferredMTU = preferredMTU
    lastRequestID = firstRequestID
  }

  // MARK: Packets

  /// Handles a request or command of the peer. Anything else is not for the server.
  mutating func handle(_ pdu: ATTPDU, mtu: Int) {
    if case .writeCommand(let handle, let value) = pdu {
      handleCommand(handle, value)
      return
    }
    guard pending == nil else {
      outputs.append(.terminate(RadioError(.other, "the peer sent a request before the last was answered")))
      return
    }
    switch pdu {
    case .exchangeMTURequest(let mtu):
      send(.exchangeMTUResponse(UInt16(truncatingIfNeeded: preferredMTU)))
      outputs.append(.mtuAgreed(max(ATTLimits.defaultMTU, min(preferredMTU, Int(mtu)))))
    case .findInformationRequest, .findByTypeValueRequest, .readByTypeRequest, .readByGroupTypeRequest:
      handleDiscovery(pdu, mtu: mtu)
    case .readRequest(let handle): handleRead(ATTOpcode.readRequest, handle, offset: 0, mtu: mtu)
    case .readBlobRequest(let handle, let offset):
      handleRead(ATTOpcode.readBlobRequest, handle, offset: Int(offset), mtu: mtu)
    case .writeRequest(let handle, let value): handleWrite(handle, value)
    case .prepareWriteRequest(let handle, let offset, let value): handlePrepare(handle, Int(offset), value)
    case .executeWriteRequest(let commits): handleExecute(commits)
    default: break
    }
  }

  /// Answers a request that could not be read.
  mutating func handleUnreadable(opcode: UInt8, isKnown: Bool) {
    guard opcode & ATTOpcode.commandFlag == 0 else { return }
    sendError(opcode, 0, isKnown ? .invalidPDU : .requestNotSupported)
  }

  // MARK: Answers of the owner

  /// Answers the pending read; ignored where `id` is not pending.
  mutating func respond(toRead id: ServerRequestID, with result: Result<Data, ATTErrorCode>, mtu: Int) {
    guard let request = pending, request.id == id else { return }
    pending = nil
    switch (result, request.opcode) {
    case (.failure(let code), _): sendError(request.opcode, request.handle, code)
    case (.success(let value), ATTOpcode.readRequest): send(.readResponse(Data(value.prefix(mtu - 1))))
    case (.success(let value), ATTOpcode.readBlobRequest):
      send(.readBlobResponse(Data(value.prefix(mtu - 1))))
    case (.success(let value), ATTOpcode.readByTypeRequest):
      let entry = ATTPDU.AttributeValue(handle: request.handle, value: Data(value.prefix(min(mtu - 4, 253))))
      send(.readByTypeResponse([entry]))
    case (.success, _): sendError(request.opcode, request.handle, .unlikelyError)
    }
  }

  /// Answers the pending write or execution; ignored where `id` is not pending.
  mutating func respond(toWrites id: ServerRequestID, with result: Result<Void, ATTErrorCode>) {
    guard let request = pending, request.id == id else { return }
    pending = nil
    switch (result, request.opcode) {
    case (.failure(let code), _): sendError(request.opcode, request.handle, code)
    case (.success, ATTOpcode.writeRequest): send(.writeResponse)
    case (.success, ATTOpcode.executeWriteRequest): send(.executeWriteResponse)
    case (.success, _): sendError(request.opcode, request.handle, .unlikelyError)
    }
  }

  // MARK: The table

  /// Takes a new table; what pointed at attributes that are gone is dropped.
  mutating func replaceTable(_ new: AttributeTable) {
    table = new
    configurations = configurations.filter { new[$0.key] != nil }
    prepared.removeAll { new[$0.handle] == nil }
    if let request = pending, request.handle != 0, new[request.handle] == nil {
      pending = nil
      sendError(request.opcode, request.handle, .invalidHandle)
    }
  }

  /// How the peer wants to be told of new values of a characteristic, or nil where it does not.
  func subscription(to attribute: LocalAttribute) -> (handle: AttributeHandle, indicates: Bool)? {
    guard let handle = table.valueHandle(of: attribute), let configuration = configurations[handle],
      !configuration.isEmpty
    else { return nil }
    return (handle, !configuration.contains(.notify))
  }

  /// Every characteristic of a client that the peer is subscribed to.
  var subscriptions: [LocalAttribute] {
    configurations.keys.sorted().compactMap { handle in
      guard configurations[handle]?.isEmpty == false, case .value(let value) = table[handle]?.content else {
        return nil
      }
      return value.owner
    }
  }

  /// Whether the peer wants to know of changed services.
  var wantsServiceChanged: Bool {
    configurations[table.serviceChangedHandle]?.contains(.indicate) == true
  }

  mutating func setConfiguration(
    _ new: ClientConfiguration, of handle: AttributeHandle, _ value: AttributeTable.Characteristic
  ) {
    let wasOn = configurations[handle]?.isEmpty == false
    configurations[handle] = new.isEmpty ? nil : new
    guard let owner = value.owner else { return }
    if !wasOn, !new.isEmpty { outputs.append(.subscribed(owner)) }
    if wasOn, new.isEmpty { outputs.append(.unsubscribed(owner)) }
  }

  func configuration(of handle: AttributeHandle) -> ClientConfiguration { configurations[handle] ?? [] }

  // MARK: Sending

  mutating func send(_ pdu: ATTPDU) { outputs.append(.send(pdu)) }

  mutating func sendError(_ opcode: UInt8, _ handle: AttributeHandle, _ code: ATTErrorCode) {
    send(.errorResponse(opcode: opcode, handle: handle, code))
  }

  mutating func makeRequestID() -> ServerRequestID {
    lastRequestID &+= 1
    return ServerRequestID(lastRequestID)
  }

  /// Remembers a request that its owner must answer and returns its number.
  mutating func wait(_ opcode: UInt8, _ handle: AttributeHandle) -> ServerRequestID {
    let id = makeRequestID()
    pending = Pending(id: id, opcode: opcode, handle: handle)
    return id
  }
}
