internal import DBus
internal import Foundation
internal import Radio

/// Calls of bluetoothd for what centrals read and write.
extension PeripheralCore {
  enum Answer: Sendable {
    case read(Data)
    case write
  }

  /// Reads the options of a call; only the daemon may make it.
  private func options(_ invocation: DBusInvocation, after others: Int = 0) throws(DBusError) -> ServerCall {
    guard invocation.message.sender == host.owner else {
      throw DBusError(name: DBusErrorName.accessDenied, message: "only bluetoothd may call this")
    }
    let body = invocation.message.body
    guard others < body.count else {
      throw DBusError(name: DBusErrorName.invalidArguments, message: "the call has no options")
    }
    return try ServerCall(body[others])
  }

  /// A value that is served without asking anybody.
  func readFixed(_ value: Data, _ invocation: DBusInvocation) {
    do {
      let call = try options(invocation)
      guard call.offset <= value.count else {
        return invocation.fail(ATTAnswer.refusal(.invalidOffset, of: .read))
      }
      try invocation.reply([.bytes(Array(value.dropFirst(call.offset)))])
    } catch { invocation.fail(error) }
  }

  func read(_ characteristic: LocalCharacteristic, _ invocation: DBusInvocation) {
    do {
      let call = try options(invocation)
      let central = try central(of: call)
      guard characteristic.isReadable else {
        return invocation.fail(ATTAnswer.refusal(.readNotPermitted, of: .read))
      }
      if let value = characteristic.staticValue { return readFixed(value, invocation) }
      guard let id = wait(invocation, .read, call) else { return }
      sink(.read(id, central: central, characteristic.id, offset: call.offset))
    } catch { invocation.fail(error) }
  }

  func write(_ characteristic: LocalCharacteristic, _ invocation: DBusInvocation) {
    do {
      let call = try options(invocation, after: 1)
      let central = try central(of: call)
      guard characteristic.isWritable, characteristic.staticValue == nil else {
        return invocation.fail(ATTAnswer.refusal(.writeNotPermitted, of: .write))
      }
      guard !call.isPrepare else { return try invocation.reply() }
      guard case .bytes(let bytes)? = invocation.message.body.first else {
        return invocation.fail(ATTAnswer.refusal(.unlikelyError, of: .write))
      }
      let writes = [
        ServerWrite(characteristic: characteristic.id, offset: call.offset, value: Data(bytes))
      ]
      // Of a characteristic that takes commands, the daemon has acknowledged requests too when it calls, and wants no answer.
      guard invocation.message.expectsReply else {
        return sink(.write(requests.makeID(), central: central, writes, needsResponse: false))
      }
      guard let id = wait(invocation, .write, call) else { return }
      sink(.write(id, central: central, writes, needsResponse: true))
    } catch { invocation.fail(error) }
  }

  /// Keeps a request until it is answered, or it is too late; nil where there are too many.
  private func wait(
    _ invocation: DBusInvocation, _ access: ATTAnswer.Access, _ call: ServerCall
  ) -> ServerRequestID? {
    guard !requests.isFull else {
      invocation.fail(ATTAnswer.refusal(.insufficientResources, of: access))
      return nil
    }
    let id = requests.makeID()
    let timer = host.schedule(after: RequestTable.timeLimit) { [weak self] in
      self?.answer(id, .failure(.unlikelyError))
    }
    requests.add(
      RequestTable.Entry(invocation: invocation, access: access, device: call.device, timer: timer), as: id)
    return id
  }

  /// Answers a request; without effect where it is too late, or the answer is for another kind of request.
  func answer(_ id: ServerRequestID, _ result: Result<Answer, ATTErrorCode>) {
    guard let entry = requests.take(id) else { return }
    do {
      switch (entry.access, result) {
      case (.read, .success(.read(let value))):
        try entry.invocation.reply([.bytes(Array(value.prefix(ApplicationTree.longestValue)))])
      case (.write, .success(.write)): try entry.invocation.reply()
      case (_, .failure(let code)): entry.invocation.fail(ATTAnswer.refusal(code, of: entry.access))
      case (.read, .success(.write)), (.write, .success(.read)):
        entry.invocation.fail(ATTAnswer.refusal(.unlikelyError, of: entry.access))
      }
    } catch { entry.invocation.fail(error) }
  }
}
