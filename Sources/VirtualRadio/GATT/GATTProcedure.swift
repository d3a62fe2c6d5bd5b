internal import Foundation
internal import Radio

/// One procedure of a GATT client (Core Vol 3 Part G 4): a few ATT requests, each sent when the last was answered.
protocol GATTProcedure {
  /// Begins; the first step is usually a request.
  mutating func start(_ link: GATTLinkState) -> GATTStep

  /// Takes the response to the last request: its opcode is right, its contents need not be.
  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep

  /// Takes the Error Response to the last request.
  mutating func handle(_ error: ATTErrorCode, _ link: GATTLinkState) -> GATTStep
}

extension GATTProcedure {
  mutating func handle(_ error: ATTErrorCode, _ link: GATTLinkState) -> GATTStep { .failed(.att(error)) }
}

/// What a procedure may know of its link.
struct GATTLinkState {
  var mtu: Int
  /// dBm.
  var rssi: Int
}

/// What comes next in a procedure.
enum GATTStep {
  case request(ATTPDU)
  case done(GATTReply)
  /// The MTU of both sides is known.
  case mtuAgreed(Int)
  /// Subscribed; the descriptor's handle is worth keeping.
  case configured(descriptor: AttributeHandle)
  case failed(GATTFailure)

  /// The peer's answer contradicts the request.
  static func nonsense(_ what: String) -> Self {
    .failed(.radio(RadioError(.other, "the peer's answer makes no sense: \(what)")))
  }
}

// MARK: - Small procedures

/// Exchange MTU (Core Vol 3 Part G 4.3.1).
struct MTUExchange: GATTProcedure {
  let preferred: Int

  mutating func start(_ link: GATTLinkState) -> GATTStep {
    .request(.exchangeMTURequest(UInt16(truncatingIfNeeded: preferred)))
  }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep {
    guard case .exchangeMTUResponse(let peer) = response else { return .nonsense("MTU") }
    return .mtuAgreed(max(ATTLimits.defaultMTU, min(preferred, Int(peer))))
  }
}

/// Asks the link itself; it has its place in the order of requests and needs no packet.
struct SignalStrengthRead: GATTProcedure {
  mutating func start(_ link: GATTLinkState) -> GATTStep { .done(.rssi(link.rssi)) }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep { .nonsense("RSSI") }
}

/// Ends at once; keeps its place in the order of requests.
struct ImmediateResult: GATTProcedure {
  let step: GATTStep

  mutating func start(_ link: GATTLinkState) -> GATTStep { step }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep { step }
}

// MARK: - Values

/// Reads a whole value: Read, then Read Blob while packets come full (Core Vol 3 Part G 4.8.1, 4.8.3).
struct ValueRead: GATTProcedure {
  let handle: AttributeHandle
  private var value = Data()

  init(handle: AttributeHandle) { self.handle = handle }

  mutating func start(_ link: GATTLinkState) -> GATTStep { .request(.readRequest(handle)) }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep {
    let part: Data
    switch response {
    case .readResponse(let data), .readBlobResponse(let data): part = data
    default: return .nonsense("read")
    }
    value.append(part)
    guard part.count == link.mtu - 1, value.count < ATTLimits.valueLength else {
      return .done(.value(value.prefix(ATTLimits.valueLength)))
    }
    return .request(.readBlobRequest(handle, offset: UInt16(truncatingIfNeeded: value.count)))
  }

  /// A value that ends exactly at the end of a packet: some servers refuse to read on from there.
  mutating func handle(_ error: ATTErrorCode, _ link: GATTLinkState) -> GATTStep {
    guard !value.isEmpty, error == .invalidOffset || error == .attributeNotLong else {
      return .failed(.att(error))
    }
    return .done(.value(value))
  }
}

/// Writes a value: Write Request where it fits, else Prepare and Execute (Core Vol 3 Part G 4.9.3, 4.9.4).
///
/// What the peer echoes while preparing is compared, and a difference cancels the write.
struct ValueWrite: GATTProcedure {
  let handle: AttributeHandle
  let value: Data
  private var prepared = 0
  private var lastPart = Data()
  private var failure: GATTFailure?

  init(handle: AttributeHandle, value: Data) {
    self.handle = handle
    self.value = value
  }

  mutating func start(_ link: GATTLinkState) -> GATTStep {
    guard value.count <= ATTLimits.valueLength else { return .failed(.att(.invalidAttributeValueLength)) }
    return value.count <= link.mtu - 3 ? .request(.writeRequest(handle, value)) : prepareNext(link)
  }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep {
    switch response {
    case .writeResponse: return .done(.done)
    case .executeWriteResponse: return failure.map { .failed($0) } ?? .done(.done)
    case .prepareWriteResponse(let handle, let offset, let echo):
      guard handle == self.handle, Int(offset) == prepared, echo == lastPart else {
        return cancel(.radio(RadioError(.other, "the peer echoed other bytes than were written")))
      }
      prepared += lastPart.count
      return prepared < value.count ? prepareNext(link) : .request(.executeWriteRequest(commits: true))
    default: return .nonsense("write")
    }
  }

  mutating func handle(_ error: ATTErrorCode, _ link: GATTLinkState) -> GATTStep {
    if let failure { return .failed(failure) }
    return prepared > 0 && prepared < value.count ? cancel(.att(error)) : .failed(.att(error))
  }

  private mutating func prepareNext(_ link: GATTLinkState) -> GATTStep {
    lastPart = Data(value.dropFirst(prepared).prefix(link.mtu - 5))
    return .request(.prepareWriteRequest(handle, offset: UInt16(truncatingIfNeeded: prepared), lastPart))
  }

  private mutating func cancel(_ failure: GATTFailure) -> GATTStep {
    self.failure = failure
    return .request(.executeWriteRequest(commits: false))
  }
}

/// Finds a characteristic's client configuration, where it is not known, and writes it (Core Vol 3 Part G 4.12.3).
struct Configuration: GATTProcedure {
  let characteristic: RemoteCharacteristic
  let bits: ClientConfiguration
  private var descriptor: AttributeHandle?
  private var search: DescriptorDiscovery

  init(characteristic: RemoteCharacteristic, mode: NotifyMode, descriptor: AttributeHandle?) {
    self.characteristic = characteristic
    self.descriptor = descriptor
    bits =
      switch mode {
      case .none: []
      case .notify: .notify
      case .indicate: .indicate
      }
    search = DescriptorDiscovery(of: characteristic)
  }

  mutating func start(_ link: GATTLinkState) -> GATTStep {
    descriptor.map { write($0) } ?? advance(search.start(link))
  }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep {
    if case .writeResponse = response, let descriptor { return .configured(descriptor: descriptor) }
    return advance(search.handle(response, link))
  }

  mutating func handle(_ error: ATTErrorCode, _ link: GATTLinkState) -> GATTStep {
    descriptor == nil ? advance(search.handle(error, link)) : .failed(.att(error))
  }

  private mutating func advance(_ step: GATTStep) -> GATTStep {
    if let found = search.found.first(where: { $0.uuid == GATTType.clientConfiguration }) {
      descriptor = found.handle
      return write(found.handle)
    }
    if case .done = step { return .failed(.att(.attributeNotFound)) }
    return step
  }

  private func write(_ descriptor: AttributeHandle) -> GATTStep {
    var bytes: [UInt8] = []
    bytes.appendUInt16(bits.rawValue)
    return .request(.writeRequest(descriptor, Data(bytes)))
  }
}

/// Reads the first characteristic of a type (Core Vol 3 Part G 4.8.2), whole.
struct ValueReadByType: GATTProcedure {
  let type: BluetoothUUID
  private var rest: ValueRead?

  init(type: BluetoothUUID) { self.type = type }

  mutating func start(_ link: GATTLinkState) -> GATTStep {
    .request(.readByTypeRequest(ATTPDU.HandleRange(1, .max), type))
  }

  mutating func handle(_ response: ATTPDU, _ link: GATTLinkState) -> GATTStep {
    if rest != nil { return rest?.handle(response, link) ?? .nonsense("read by type") }
    guard case .readByTypeResponse(let entries) = response, let first = entries.first else {
      return .nonsense("read by type")
    }
    guard first.value.count >= min(link.mtu - 4, 253) else { return .done(.value(first.value)) }
    var read = ValueRead(handle: first.handle)
    let step = read.start(link)
    rest = read
    return step
  }

  mutating func handle(_ error: ATTErrorCode, _ link: GATTLinkState) -> GATTStep {
    rest?.handle(error, link) ?? .failed(.att(error))
  }
}
