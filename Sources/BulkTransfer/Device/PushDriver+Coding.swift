internal import Foundation

extension PushDriver {
  /// Codes a segment at a level that the link leaves time for.
  func code(_ segment: Data, of index: Int, base: Range<UInt64>?) throws(TransferError) -> Data? {
    let start = clock.now
    defer { pace.coded(from: start, to: clock.now, steps: SegmentEncoder.steps) }
    var part: (source: any ByteSource, range: Range<UInt64>)?
    if let base {
      guard let source = objects[index].base else { return nil }
      part = (source, base)
    }
    return try encoder.encode(segment, base: part, reduction: pace.reduction)
  }

  /// The objects of a session: after the first one the object under way has a challenge of its own, lest an answer be repeated from memory.
  ///
  /// - Parameter session: how many there were before.
  func outgoing(from index: Int, session: Int) -> [OutgoingObject] {
    var outgoing = objects.map(\.object)
    guard session > 0, outgoing.indices.contains(index), let base = outgoing[index].coding?.base,
      let source = objects[index].base
    else { return outgoing }
    let challenge = (0..<BaseImage.challengeCount).map { _ in UInt8.random(in: 0...255) }
    let renewed = try? BaseImage(of: source, challenge: challenge)
    // One that has changed, or cannot be read any more, is none.
    outgoing[index].coding?.base = renewed?.sha256 == base.sha256 ? renewed : nil
    return outgoing
  }
}
