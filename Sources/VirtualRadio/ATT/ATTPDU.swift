internal import Foundation
internal import Radio

/// A packet of the Attribute Protocol (Core Vol 3 Part F 3.4).
enum ATTPDU: Hashable {
  case errorResponse(opcode: UInt8, handle: AttributeHandle, ATTErrorCode)
  case exchangeMTURequest(UInt16)
  case exchangeMTUResponse(UInt16)
  case findInformationRequest(HandleRange)
  case findInformationResponse([RemoteDescriptor])
  case findByTypeValueRequest(HandleRange, type: UInt16, value: Data)
  case findByTypeValueResponse([HandleRange])
  case readByTypeRequest(HandleRange, BluetoothUUID)
  case readByTypeResponse([AttributeValue])
  case readRequest(AttributeHandle)
  case readResponse(Data)
  case readBlobRequest(AttributeHandle, offset: UInt16)
  case readBlobResponse(Data)
  case readByGroupTypeRequest(HandleRange, BluetoothUUID)
  case readByGroupTypeResponse([GroupValue])
  case writeRequest(AttributeHandle, Data)
  case writeResponse
  case prepareWriteRequest(AttributeHandle, offset: UInt16, Data)
  case prepareWriteResponse(AttributeHandle, offset: UInt16, Data)
  case executeWriteRequest(commits: Bool)
  case executeWriteResponse
  case notification(AttributeHandle, Data)
  case indication(AttributeHandle, Data)
  case confirmation
  case writeCommand(AttributeHandle, Data)

  /// Two handles as they came: a peer may send them in the wrong order.
  struct HandleRange: Hashable {
    var start: AttributeHandle
    var end: AttributeHandle

    init(_ start: AttributeHandle, _ end: AttributeHandle) {
      self.start = start
      self.end = end
    }

    /// The range, where it is one.
    var closed: ClosedRange<AttributeHandle>? { start != 0 && start <= end ? start...end : nil }
  }

  /// An entry of a Read By Type Response.
  struct AttributeValue: Hashable {
    var handle: AttributeHandle
    var value: Data
  }

  /// An entry of a Read By Group Type Response.
  struct GroupValue: Hashable {
    var handles: HandleRange
    var value: Data
  }
}

/// Opcodes (Core Vol 3 Part F 3.4.8).
enum ATTOpcode {
  static let errorResponse: UInt8 = 0x01
  static let exchangeMTURequest: UInt8 = 0x02
  static let exchangeMTUResponse: UInt8 = 0x03
  static let findInformationRequest: UInt8 = 0x04
  static let findInformationResponse: UInt8 = 0x05
  static let findByTypeValueRequest: UInt8 = 0x06
  static let findByTypeValueResponse: UInt8 = 0x07
  static let readByTypeRequest: UInt8 = 0x08
  static let readByTypeResponse: UInt8 = 0x09
  static let readRequest: UInt8 = 0x0A
  static let readResponse: UInt8 = 0x0B
  static let readBlobRequest: UInt8 = 0x0C
  static let readBlobResponse: UInt8 = 0x0D
  static let readByGroupTypeRequest: UInt8 = 0x10
  static let readByGroupTypeResponse: UInt8 = 0x11
  static let writeRequest: UInt8 = 0x12
  static let writeResponse: UInt8 = 0x13
  static let prepareWriteRequest: UInt8 = 0x16
  static let prepareWriteResponse: UInt8 = 0x17
  static let executeWriteRequest: UInt8 = 0x18
  static let executeWriteResponse: UInt8 = 0x19
  static let notification: UInt8 = 0x1B
  static let indication: UInt8 = 0x1D
  static let confirmation: UInt8 = 0x1E
  static let writeCommand: UInt8 = 0x52

  /// Bit of an opcode that marks a command: it is never answered, also where it is not understood.
  static let commandFlag: UInt8 = 0x40
}

/// Sizes of the Attribute Protocol in octets.
enum ATTLimits {
  /// ATT MTU of a link before an exchange (Core Vol 3 Part G 5.2.1).
  static let defaultMTU = 23
  /// Largest ATT MTU that makes sense: a Prepare Write Request around 512 octets.
  static let maximumMTU = 517
  /// Longest attribute value (Core Vol 3 Part F 3.2.9).
  static let valueLength = 512
}
