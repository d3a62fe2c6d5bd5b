internal import Radio

extension ATTPDU {
  /// Who handles a packet at its receiver.
  enum Destination {
    case server, client, indicationSender
  }

  var destination: Destination {
    switch self {
    case .exchangeMTURequest, .findInformationRequest, .findByTypeValueRequest, .readByTypeRequest,
      .readRequest, .readBlobRequest, .readByGroupTypeRequest, .writeRequest, .prepareWriteRequest,
      .executeWriteRequest, .writeCommand:
      .server
    case .errorResponse, .exchangeMTUResponse, .findInformationResponse, .findByTypeValueResponse,
      .readByTypeResponse, .readResponse, .readBlobResponse, .readByGroupTypeResponse, .writeResponse,
      .prepareWriteResponse, .executeWriteResponse, .notification, .indication:
      .client
    case .confirmation: .indicationSender
    }
  }

  /// The first octet of the packet.
  var opcode: UInt8 {
    switch self {
    case .errorResponse: ATTOpcode.errorResponse
    case .exchangeMTURequest: ATTOpcode.exchangeMTURequest
    case .exchangeMTUResponse: ATTOpcode.exchangeMTUResponse
    case .findInformationRequest: ATTOpcode.findInformationRequest
    case .findInformationResponse: ATTOpcode.findInformationResponse
    case .findByTypeValueRequest: ATTOpcode.findByTypeValueRequest
    case .findByTypeValueResponse: ATTOpcode.findByTypeValueResponse
    case .readByTypeRequest: ATTOpcode.readByTypeRequest
    case .readByTypeResponse: ATTOpcode.readByTypeResponse
    case .readRequest: ATTOpcode.readRequest
    case .readResponse: ATTOpcode.readResponse
    case .readBlobRequest: ATTOpcode.readBlobRequest
    case .readBlobResponse: ATTOpcode.readBlobResponse
    case .readByGroupTypeRequest: ATTOpcode.readByGroupTypeRequest
    case .readByGroupTypeResponse: ATTOpcode.readByGroupTypeResponse
    case .writeRequest: ATTOpcode.writeRequest
    case .writeResponse: ATTOpcode.writeResponse
    case .prepareWriteRequest: ATTOpcode.prepareWriteRequest
    case .prepareWriteResponse: ATTOpcode.prepareWriteResponse
    case .executeWriteRequest: ATTOpcode.executeWriteRequest
    case .executeWriteResponse: ATTOpcode.executeWriteResponse
    case .notification: ATTOpcode.notification
    case .indication: ATTOpcode.indication
    case .confirmation: ATTOpcode.confirmation
    case .writeCommand: ATTOpcode.writeCommand
    }
  }
}
