import Foundation

/// What a capture of a GATT transfer shows, read independently of what wrote it (btsnoop; Core Vol 3 Part A 3.1 and Part F 3.4).
struct Capture {
  /// Values of write commands, in order: the data stream.
  private(set) var writeCommands: [[UInt8]] = []
  /// Values of write requests, in order: control messages of the sender with a fragment header.
  private(set) var writeRequests: [[UInt8]] = []
  /// Values of notifications, in order: control messages of the receiver.
  private(set) var notifications: [[UInt8]] = []
  /// Frames on other channels than ATT and signalling.
  private(set) var channelFrames = 0
  /// What they carry.
  private(set) var channelOctets = 0
  private(set) var connections = 0
  /// Connection intervals in units of 1.25 ms.
  private(set) var intervals: [Int] = []
  /// From the first packet to the last write command. What comes after the end of a transfer depends on when the program gets to know of it.
  private(set) var dataDuration: Duration = .zero
  /// The most data that was out without a receipt.
  private(set) var mostInFlight = 0

  init(path: String) throws {
    let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
    var offset = 16
    var frame: [UInt8] = []
    var first: UInt64?
    var sent = 0
    while offset + 24 <= bytes.count {
      let length = Int(Self.big(bytes[(offset + 4)..<(offset + 8)]))
      let time = Self.big(bytes[(offset + 16)..<(offset + 24)])
      first = first ?? time
      let elapsed = Duration.microseconds(Int64(time - (first ?? time)))
      let packet = Array(bytes[(offset + 24)..<(offset + 24 + length)])
      offset += 24 + length
      if packet.starts(with: [0x04, 0x3E, 19, 0x01]) {
        connections += 1
        intervals.append(Int(packet[15]) | Int(packet[16]) << 8)
      }
      guard packet[0] == 0x02 else { continue }
      let isContinuing = packet[2] >> 4 & 3 == 1
      frame = isContinuing ? frame + packet[5...] : Array(packet[5...])
      guard frame.count >= 4, frame.count == 4 + Int(frame[0]) | Int(frame[1]) << 8 else { continue }
      let commands = writeCommands.count
      take(frame, &sent)
      if writeCommands.count > commands { dataDuration = elapsed }
    }
  }

  private mutating func take(_ frame: [UInt8], _ sent: inout Int) {
    guard frame[2] == 4, frame[3] == 0 else {
      if frame[2] >= 0x40 {
        channelFrames += 1
        channelOctets += frame.count - 4
      }
      return
    }
    let value = Array(frame.dropFirst(7))
    switch frame[4] {
    case 0x52:
      writeCommands.append(value)
      // SYNC begins the stream and is no part of it.
      if value.count != 20 || !value.starts(with: [0x48, 0x41, 0x55, 0x4C]) { sent += value.count }
    case 0x12: writeRequests.append(value)
    case 0x1B:
      notifications.append(value)
      // RECEIPT while data streams: fragment header, type, request, epoch, state, received.
      if value.count >= 12, value[1] == 0x83, value[5] == 1 {
        let received = (0..<6).reduce(0) { $0 | Int(value[6 + $1]) << (8 * $1) }
        mostInFlight = max(mostInFlight, sent - received)
      }
    default: break
    }
  }

  /// The fields of the last OFFER: segment size as a power of two, and the receipt interval.
  ///
  /// One that comes with HELLO knows no limits of the receiver yet, and is made anew where it is beyond them.
  /// It is a message of its own behind the header of its fragment, or the extension of type 2 behind the 14 octets of HELLO.
  var offer: (segmentPower: Int, receipts: Int)? {
    for value in writeRequests.reversed() where value.count > 29 {
      let isBrought = value[1] == 0x01 && value[15] == 0x02
      let offer = Array(value.dropFirst(isBrought ? 17 : 1))
      if offer[0] == 0x02 {
        return (Int(offer[7]), (0..<4).reduce(0) { $0 | Int(offer[8 + $1]) << (8 * $1) })
      }
    }
    return nil
  }

  private static func big(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
