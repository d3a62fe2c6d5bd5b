internal import Dispatch
internal import Locking

/// A call that waits for its answer.
///
/// The first answer counts. One that goes without any is answered with an error, so that no caller waits in vain.
public final class DBusInvocation: Sendable {
  /// The call, with its sender and its arguments.
  public let message: DBusMessage
  private let outputs: [DBusType]
  private let isAnswered = PosixMutex(false)
  private let answer: @Sendable (DBusMessage?) -> Void

  init(_ message: DBusMessage, outputs: [DBusType], _ core: ConnectionCore) {
    self.message = message
    self.outputs = outputs
    answer = { [weak core] answer in
      guard let core else { return }
      core.queue.async { core.finishInvocation(answer) }
    }
  }

  deinit { fail(DBusError(name: DBusErrorName.failed, message: "the method gave no answer")) }

  /// Answers with values of the declared types.
  ///
  /// Throws with kind ``DBusError/Kind/invalidArgument`` where they have others, or an answer was given; the first can still be mended.
  public func reply(_ values: [DBusValue] = []) throws(DBusError) {
    guard values.map(\.type) == outputs else {
      throw .invalid(
        "“\(values.map(\.type.description).joined())” is returned where “\(outputs.map(\.description).joined())” is declared"
      )
    }
    let reply = try DBusMessage.reply(to: message, body: values)
    guard begin() else { throw .invalid("the call was answered before") }
    answer(message.expectsReply ? reply : nil)
  }

  /// Answers with an error; without effect after another answer.
  public func fail(_ error: DBusError) {
    guard begin() else { return }
    answer(message.expectsReply ? .error(to: message, error) : nil)
  }

  private func begin() -> Bool {
    isAnswered.withLock { answered in
      defer { answered = true }
      return !answered
    }
  }
}
