public import Foundation

/// The packet that starts the data stream of an epoch; always 20 octets, so that it fits the smallest ATT MTU.
public struct SyncPacket: Hashable, Sendable {
  /// Length in octets.
  public static let byteCount = 20
  private static let magic: [UInt8] = [0x48, 0x41, 0x55, 0x4C]

  /// The low 32 bits of the session number.
  public var session: UInt32
  public var epoch: Epoch
  /// Offset of the first octet that follows; below 2^48.
  public var offset: UInt64

  public init(session: UInt32, epoch: Epoch, offset: UInt64) {
    self.session = session
    self.epoch = epoch
    self.offset = offset
  }

  /// The octets of the packet.
  public var encoded: Data {
    var writer = MessageWriter()
    writer.octets(Self.magic)
    writer.u32(session)
    writer.u16(epoch.rawValue)
    writer.u48(offset)
    writer.u32(CRC32C.checksum(of: writer.bytes))
    return writer.data
  }

  /// Reads a packet; nil unless it has exactly the right length, mark and checksum.
  public init?(decoding packet: Data) {
    guard packet.count == Self.byteCount, packet.starts(with: Self.magic) else { return nil }
    var reader = MessageReader(packet)
    guard (try? reader.octets(Self.magic.count)) != nil, let session = try? reader.u32(),
      let epoch = try? reader.u16(), let offset = try? reader.u48(), let check = try? reader.u32(),
      check == CRC32C.checksum(of: packet.prefix(Self.byteCount - 4))
    else { return nil }
    self.init(session: session, epoch: Epoch(rawValue: epoch), offset: offset)
  }
}
