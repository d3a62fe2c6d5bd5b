internal import Foundation

/// The outside of a SUIT envelope (RFC 9124's information model as CBOR, `draft-ietf-suit-manifest`): enough to name it and its digest.
struct SUITEnvelope {
  private static let algorithms: [Int64: String] = [-16: "SHA-256", -43: "SHA-384", -44: "SHA-512"]

  /// The hash by which the manifest is signed.
  var digest: (algorithm: String, value: [UInt8])

  /// Whether bytes begin as an envelope: a map with the authentication wrapper (key 2) first, with tag 107 or without.
  static func matches(_ head: Data) -> Bool {
    let tagged = head.starts(with: [0xD8, 0x6B])
    var reader = CBORReader(tagged ? head.dropFirst(2) : head)
    guard let map = try? reader.head(), map.major == 5, (2...16).contains(map.value),
      let key = try? reader.head(), key.major == 0
    else { return false }
    if tagged { return true }
    guard key.value == 2, let wrapper = try? reader.head(), wrapper.major == 2,
      let array = try? reader.head(), array.major == 4, let digest = try? reader.head(), digest.major == 2,
      let inner = try? reader.head()
    else { return false }
    return inner.major == 4 && inner.value == 2
  }

  /// - Throws: `malformedFile` if the envelope is cut short or something else follows.
  init(_ bytes: Data, name: String) throws(TransferError) {
    func fault(_ what: String) -> TransferError {
      TransferError(
        .malformedFile, "\(name) is a SUIT envelope and \(what)", advice: "copy or build it again")
    }
    do throws(CBORReader.Failure) {
      var outer = CBORReader(bytes.starts(with: [0xD8, 0x6B]) ? bytes.dropFirst(2) : bytes)
      let map = try outer.head()
      var wrapper: Data?
      for _ in 0..<map.value {
        let key = try outer.head()
        let isWrapper = key.major == 0 && key.value == 2
        try outer.skipContent(of: key)
        if isWrapper { wrapper = try outer.byteString() } else { try outer.skip() }
      }
      guard outer.isAtEnd else { throw .malformed }
      var inner = CBORReader(wrapper ?? Data())
      _ = try inner.head()
      var pair = CBORReader(try inner.byteString())
      _ = try pair.head()
      let algorithm = try pair.head()
      let value = try pair.byteString()
      let number =
        algorithm.major == 1 ? -1 - Int64(clamping: algorithm.value) : Int64(clamping: algorithm.value)
      digest = (Self.algorithms[number] ?? "algorithm \(number)", [UInt8](value))
    } catch {
      switch error {
      case .short: throw fault("cut short after \(bytes.count) bytes")
      case .malformed: throw fault("damaged")
      }
    }
  }
}

/// Reads CBOR (RFC 8949) items one by one; everything is checked against the end of the bytes.
struct CBORReader {
  enum Failure: Error { case short, malformed }

  /// The head of an item: major type and argument.
  struct Head: Hashable {
    var major: UInt8
    var value: UInt64
  }

  private static let deepest = 16
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: Data) { self.bytes = [UInt8](bytes) }

  var isAtEnd: Bool { position == bytes.count }

  /// Reads the head of the next item; items of indefinite length are not used in envelopes.
  mutating func head() throws(Failure) -> Head {
    guard position < bytes.count else { throw .short }
    let initial = bytes[position]
    position += 1
    let (major, info) = (initial >> 5, initial & 31)
    if info < 24 { return Head(major: major, value: UInt64(info)) }
    guard info < 28 else { throw .malformed }
    let count = 1 << Int(info - 24)
    guard bytes.count - position >= count else { throw .short }
    let value = bytes[position..<position + count].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    position += count
    return Head(major: major, value: value)
  }

  /// Reads a byte string.
  mutating func byteString() throws(Failure) -> Data {
    let head = try head()
    guard head.major == 2 else { throw .malformed }
    guard head.value <= UInt64(bytes.count - position) else { throw .short }
    let start = position
    position += Int(head.value)
    return Data(bytes[start..<position])
  }

  /// Passes over the next item.
  mutating func skip() throws(Failure) { try skip(depth: 0) }

  /// Passes over what belongs to a head that was read.
  mutating func skipContent(of head: Head) throws(Failure) { try skipContent(of: head, depth: 0) }

  private mutating func skip(depth: Int) throws(Failure) {
    try skipContent(of: try head(), depth: depth)
  }

  private mutating func skipContent(of head: Head, depth: Int) throws(Failure) {
    guard depth < Self.deepest else { throw .malformed }
    switch head.major {
    case 2, 3:
      guard head.value <= UInt64(bytes.count - position) else { throw .short }
      position += Int(head.value)
    case 4, 5:
      // Each item takes a byte at least, so that a huge count ends at the end of the bytes.
      let (items, overflow) = head.value.multipliedReportingOverflow(by: head.major == 5 ? 2 : 1)
      guard !overflow, items <= UInt64(bytes.count - position) else { throw .short }
      for _ in 0..<items { try skip(depth: depth + 1) }
    case 6: try skip(depth: depth + 1)
    default: break
    }
  }
}
