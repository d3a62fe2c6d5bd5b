import PrivateBus
import Testing

extension PrivateBus {
  /// For tests that need a bus.
  static let isThere = ConditionTrait.enabled(if: isInstalled, Comment(rawValue: whatIsMissing))
}

/// Values in the order in which they came, to be awaited.
final class Arrivals<Element: Sendable>: Sendable {
  private let stream: AsyncStream<Element>
  private let continuation: AsyncStream<Element>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream(of: Element.self) }

  func put(_ element: Element) { continuation.yield(element) }

  func next(sourceLocation: SourceLocation = #_sourceLocation) async throws -> Element {
    var iterator = stream.makeAsyncIterator()
    return try #require(await iterator.next(), sourceLocation: sourceLocation)
  }

  /// The first that `find` takes; those before it are dropped.
  func first<Found>(
    sourceLocation: SourceLocation = #_sourceLocation, _ find: (Element) -> Found?
  ) async throws -> Found {
    while true {
      if let found = find(try await next(sourceLocation: sourceLocation)) { return found }
    }
  }
}
