import DBus
import PrivateBus
import Testing

extension PrivateBus {
  /// For tests that need a bus.
  static let isThere = ConditionTrait.enabled(if: isInstalled, Comment(rawValue: whatIsMissing))
}

/// Values in the order in which handlers made them, to be awaited.
final class Inbox<Element: Sendable>: Sendable {
  private let stream: AsyncStream<Element>
  private let continuation: AsyncStream<Element>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream(of: Element.self) }

  func put(_ element: Element) { continuation.yield(element) }

  func next() async throws -> Element {
    var iterator = stream.makeAsyncIterator()
    return try #require(await iterator.next())
  }

  func next(_ count: Int) async throws -> [Element] {
    var elements: [Element] = []
    while elements.count < count { elements.append(try await next()) }
    return elements
  }
}

/// The error that a call ends with.
func failure<Success>(_ body: () async throws -> Success) async -> DBusError? {
  do {
    _ = try await body()
    return nil
  } catch { return error as? DBusError }
}
