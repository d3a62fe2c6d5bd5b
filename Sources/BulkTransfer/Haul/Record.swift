public import Foundation

/// What an L2CAP channel carries: a control message, a part of the data stream, or a SYNC.
public struct Record: Hashable, Sendable {
  /// The first octet of a record.
  public enum Kind: UInt8, Hashable, Sendable {
    case control = 1
    case stream = 2
    case sync = 3
  }

  /// The longest body in octets.
  public static let bodyLimit = 16384
  /// Octets before the body.
  public static let headerCount = 3

  public var kind: Kind
  /// 1...16384 octets.
  public var body: Data

  public init(kind: Kind, body: Data) {
    self.kind = kind
    self.body = body
  }
}

/// Writes records for an L2CAP channel.
public enum RecordEncoder {
  /// The three octets before a body of `count` octets.
  public static func header(_ kind: Record.Kind, count: Int) -> Data {
    Data([kind.rawValue, UInt8(truncatingIfNeeded: count), UInt8(truncatingIfNeeded: count >> 8)])
  }

  /// Header and body; a body that is longer than a record may be is spread over several records of a stream.
  public static func encode(_ record: Record) -> Data {
    var bytes = Data(capacity: record.body.count + Record.headerCount)
    var rest = record.body
    while !rest.isEmpty {
      let body = rest.prefix(Record.bodyLimit)
      bytes.append(header(record.kind, count: body.count))
      bytes.append(body)
      rest = rest.dropFirst(body.count)
    }
    return bytes
  }
}

/// Reads records from the octets of an L2CAP channel, however they are sliced.
///
/// Holds at most a header and a control message or SYNC: parts of the data stream are passed on as they come, without waiting for the end
/// of their record. After an error the channel has to be closed.
public struct RecordDecoder: Sendable {
  private enum State: Sendable {
    case header(Data)
    case body(Record.Kind, left: Int, gathered: Data)
    case broken(HaulCodingError)
  }

  private var state = State.header(Data())

  public init() {}

  /// Takes octets from the channel; returns what they complete.
  public mutating func decode(_ input: Data) throws(HaulCodingError) -> [Record] {
    var records: [Record] = []
    var rest = input[...]
    while !rest.isEmpty {
      switch state {
      case .header(var header):
        let piece = rest.prefix(Record.headerCount - header.count)
        header.append(piece)
        rest = rest.dropFirst(piece.count)
        state = header.count < Record.headerCount ? .header(header) : try begin(header)
      case .body(let kind, let left, var gathered):
        let piece = rest.prefix(left)
        rest = rest.dropFirst(piece.count)
        let isComplete = piece.count == left
        if kind == .stream {
          records.append(Record(kind: kind, body: piece))
        } else {
          gathered.append(piece)
          if isComplete { records.append(Record(kind: kind, body: gathered)) }
        }
        state =
          isComplete ? .header(Data()) : .body(kind, left: left - piece.count, gathered: gathered)
      case .broken(let error):
        throw error
      }
    }
    return records
  }

  private mutating func begin(_ header: Data) throws(HaulCodingError) -> State {
    let octets = [UInt8](header)
    let count = Int(octets[1]) | Int(octets[2]) << 8
    do throws(HaulCodingError) {
      guard let kind = Record.Kind(rawValue: octets[0]) else { throw .unknownRecord(octets[0]) }
      let limit =
        switch kind {
        case .control: ControlAssembler.messageLimit
        case .stream: Record.bodyLimit
        case .sync: SyncPacket.byteCount
        }
      guard count > 0 else { throw .truncated }
      guard count <= limit else { throw .tooLong(count) }
      return .body(kind, left: count, gathered: Data())
    } catch {
      state = .broken(error)
      throw error
    }
  }
}
