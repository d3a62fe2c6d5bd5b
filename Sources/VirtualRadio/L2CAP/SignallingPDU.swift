internal import Radio

/// A command on the LE signalling channel (Core Vol 3 Part A 4).
struct SignallingPDU: Hashable {
  /// Matches a response to its request; never 0.
  var identifier: UInt8
  /// What is said.
  var command: Command

  enum Command: Hashable {
    /// 4.1
    case reject(RejectReason)
    /// 4.6: identifiers as the receiver of the request sees them.
    case disconnectionRequest(destination: UInt16, source: UInt16)
    /// 4.7
    case disconnectionResponse(destination: UInt16, source: UInt16)
    /// 4.20: interval in units of 1.25 ms, latency in events, timeout in units of 10 ms.
    case parameterUpdateRequest(intervalMin: UInt16, intervalMax: UInt16, latency: UInt16, timeout: UInt16)
    /// 4.21
    case parameterUpdateResponse(isAccepted: Bool)
    /// 4.22
    case connectionRequest(psm: PSM, source: UInt16, ChannelLimits)
    /// 4.23
    case connectionResponse(destination: UInt16, ChannelLimits, ConnectionResult)
    /// 4.24: the channel as the sender of the credits names it.
    case flowControlCredit(cid: UInt16, credits: UInt16)
  }

  /// Why a command was rejected.
  enum RejectReason: Hashable {
    case notUnderstood
    case mtuExceeded(UInt16)
    case invalidChannel(local: UInt16, remote: UInt16)
    case other(UInt16)
  }

  /// What one side of a channel takes.
  struct ChannelLimits: Hashable {
    /// Longest SDU in octets, 23...65535.
    var mtu: UInt16
    /// Longest K-frame payload in octets, SDU length included, 23...65533.
    var mps: UInt16
    /// K-frames that may be sent to begin with.
    var credits: UInt16
  }

  /// Result of a connection request; values of Core Vol 3 Part A 4.23.
  struct ConnectionResult: RawRepresentable, Hashable {
    var rawValue: UInt16

    static let success = Self(rawValue: 0x0000)
    static let psmNotSupported = Self(rawValue: 0x0002)
    static let noResources = Self(rawValue: 0x0004)
    static let insufficientAuthentication = Self(rawValue: 0x0005)
    static let insufficientAuthorization = Self(rawValue: 0x0006)
    static let insufficientKeySize = Self(rawValue: 0x0007)
    static let insufficientEncryption = Self(rawValue: 0x0008)
    static let invalidSource = Self(rawValue: 0x0009)
    static let sourceAlreadyAllocated = Self(rawValue: 0x000A)
    static let unacceptableParameters = Self(rawValue: 0x000B)
  }

  /// What is wrong with a command; the identifier, where there is one, lets it be rejected.
  enum DecodingError: Error, Hashable {
    case tooShort
    case unknownCode(UInt8, identifier: UInt8)
    case malformed(UInt8, identifier: UInt8)
  }
}

// MARK: - On the air

extension SignallingPDU {
  private enum Code {
    static let reject: UInt8 = 0x01
    static let disconnectionRequest: UInt8 = 0x06
    static let disconnectionResponse: UInt8 = 0x07
    static let parameterUpdateRequest: UInt8 = 0x12
    static let parameterUpdateResponse: UInt8 = 0x13
    static let connectionRequest: UInt8 = 0x14
    static let connectionResponse: UInt8 = 0x15
    static let flowControlCredit: UInt8 = 0x16
  }

  /// The basic frame that carries the command.
  var frame: [UInt8] {
    L2CAPFrame.make(cid: ChannelIdentifier.signalling, capacity: 16) { bytes in
      let (code, fields) = codeAndFields
      bytes.append(code)
      bytes.append(identifier)
      bytes.appendUInt16(UInt16(truncatingIfNeeded: 2 * fields.count))
      for field in fields { bytes.appendUInt16(field) }
    }
  }

  /// All commands that LE uses consist of 16-bit fields.
  private var codeAndFields: (UInt8, [UInt16]) {
    switch command {
    case .reject(.notUnderstood): (Code.reject, [0])
    case .reject(.mtuExceeded(let mtu)): (Code.reject, [1, mtu])
    case .reject(.invalidChannel(let local, let remote)): (Code.reject, [2, local, remote])
    case .reject(.other(let reason)): (Code.reject, [reason])
    case .disconnectionRequest(let destination, let source):
      (Code.disconnectionRequest, [destination, source])
    case .disconnectionResponse(let destination, let source):
      (Code.disconnectionResponse, [destination, source])
    case .parameterUpdateRequest(let intervalMin, let intervalMax, let latency, let timeout):
      (Code.parameterUpdateRequest, [intervalMin, intervalMax, latency, timeout])
    case .parameterUpdateResponse(let isAccepted): (Code.parameterUpdateResponse, [isAccepted ? 0 : 1])
    case .connectionRequest(let psm, let source, let limits):
      (Code.connectionRequest, [psm, source, limits.mtu, limits.mps, limits.credits])
    case .connectionResponse(let destination, let limits, let result):
      (Code.connectionResponse, [destination, limits.mtu, limits.mps, limits.credits, result.rawValue])
    case .flowControlCredit(let cid, let credits): (Code.flowControlCredit, [cid, credits])
    }
  }

  /// Reads the payload of a basic frame on the signalling channel: exactly one command.
  init(frame: [UInt8]) throws(DecodingError) {
    var reader = ByteReader(frame, from: L2CAPFrame.headerLength)
    guard let code = reader.readUInt8(), let identifier = reader.readUInt8(), let length = reader.readUInt16()
    else { throw .tooShort }
    guard reader.remaining == Int(length), identifier != 0 else {
      throw .malformed(code, identifier: identifier)
    }
    var fields: [UInt16] = []
    while fields.count < 5, let field = reader.readUInt16() { fields.append(field) }
    guard reader.remaining == 0 else { throw .malformed(code, identifier: identifier) }
    guard let command = try Self.command(code, fields, identifier) else {
      throw .malformed(code, identifier: identifier)
    }
    self.init(identifier: identifier, command: command)
  }

  /// The command of a code, or nil where the number of fields does not fit it.
  private static func command(
    _ code: UInt8, _ f: [UInt16], _ identifier: UInt8
  ) throws(DecodingError) -> Command? {
    switch (code, f.count) {
    case (Code.reject, 1) where f[0] == 0: .reject(.notUnderstood)
    case (Code.reject, 2) where f[0] == 1: .reject(.mtuExceeded(f[1]))
    case (Code.reject, 3) where f[0] == 2: .reject(.invalidChannel(local: f[1], remote: f[2]))
    case (Code.reject, 1...): .reject(.other(f[0]))
    case (Code.disconnectionRequest, 2): .disconnectionRequest(destination: f[0], source: f[1])
    case (Code.disconnectionResponse, 2): .disconnectionResponse(destination: f[0], source: f[1])
    case (Code.parameterUpdateRequest, 4):
      .parameterUpdateRequest(intervalMin: f[0], intervalMax: f[1], latency: f[2], timeout: f[3])
    case (Code.parameterUpdateResponse, 1): .parameterUpdateResponse(isAccepted: f[0] == 0)
    case (Code.connectionRequest, 5):
      .connectionRequest(psm: f[0], source: f[1], ChannelLimits(mtu: f[2], mps: f[3], credits: f[4]))
    case (Code.connectionResponse, 5):
      .connectionResponse(
        destination: f[0], ChannelLimits(mtu: f[1], mps: f[2], credits: f[3]),
        ConnectionResult(rawValue: f[4]))
    case (Code.flowControlCredit, 2): .flowControlCredit(cid: f[0], credits: f[1])
    case (Code.reject, _), (Code.disconnectionRequest, _), (Code.disconnectionResponse, _),
      (Code.parameterUpdateRequest, _), (Code.parameterUpdateResponse, _), (Code.connectionRequest, _),
      (Code.connectionResponse, _), (Code.flowControlCredit, _):
      nil
    default: throw .unknownCode(code, identifier: identifier)
    }
  }
}
