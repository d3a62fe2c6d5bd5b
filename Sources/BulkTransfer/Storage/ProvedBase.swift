/// A stored object that was read and found to be the base that was asked for.
public struct ProvedBase: Sendable {
  /// Its octets, which can be read after another object has taken its name.
  public let source: any ByteSource
  /// The first octets of SHA-256(challenge | octets).
  public let proof: [UInt8]

  /// Reads all of a source, once; nil where it is another object than the one that is wanted.
  ///
  /// - Throws: what reading throws.
  public init?(_ source: any ByteSource, answering wanted: BaseRequest) throws(TransferError) {
    guard source.size == wanted.size else { return nil }
    self.init(source, try BaseImage(of: source, challenge: wanted.challenge), answering: wanted)
  }

  /// Takes what was made from reading the source just now.
  init?(_ source: any ByteSource, _ image: BaseImage, answering wanted: BaseRequest) {
    guard image.size == wanted.size, image.sha256 == wanted.sha256 else { return nil }
    self.source = source
    proof = image.proof
  }
}
