public import Foundation

/// A value of the characteristic Heart Rate Measurement, 0x2A37 (GATT Specification Supplement).
public struct HeartRateMeasurement: Hashable, Sendable {
  /// Whether the sensor touches the skin.
  public enum Contact: Hashable, Sendable, CaseIterable {
    /// The sensor cannot tell.
    case unknown
    case lost
    case detected
  }

  private enum Flags {
    static let isWide: UInt8 = 1 << 0
    static let contactDetected: UInt8 = 1 << 1
    static let contactSupported: UInt8 = 1 << 2
    static let hasEnergy: UInt8 = 1 << 3
    static let hasIntervals: UInt8 = 1 << 4
  }

  /// Beats per minute.
  public var rate: UInt16
  public var contact: Contact
  /// Energy since the sensor was reset, in kilojoules; 65535: that or more.
  public var energy: UInt16?
  /// Times between beats in units of 1/1024 s, oldest first.
  public var intervals: [UInt16]

  /// Describes a measurement.
  public init(rate: UInt16, contact: Contact = .unknown, energy: UInt16? = nil, intervals: [UInt16] = []) {
    self.rate = rate
    self.contact = contact
    self.energy = energy
    self.intervals = intervals
  }

  /// Reads a value; nil where its length does not fit its flags.
  public init?(_ value: Data) {
    var reader = LittleEndianReader(value)
    guard let flags: UInt8 = reader.read() else { return nil }
    func has(_ flag: UInt8) -> Bool { flags & flag != 0 }

    if has(Flags.isWide) {
      guard let rate: UInt16 = reader.read() else { return nil }
      self.rate = rate
    } else {
      guard let rate: UInt8 = reader.read() else { return nil }
      self.rate = UInt16(rate)
    }
    contact = has(Flags.contactSupported) ? has(Flags.contactDetected) ? .detected : .lost : .unknown
    if has(Flags.hasEnergy) {
      guard let energy: UInt16 = reader.read() else { return nil }
      self.energy = energy
    }
    intervals = []
    if has(Flags.hasIntervals) {
      guard reader.remaining > 0 else { return nil }
      while let interval: UInt16 = reader.read() { intervals.append(interval) }
    }
    guard reader.remaining == 0 else { return nil }
  }

  /// The value on the air, with a rate of one octet where that is enough.
  public var value: Data {
    var flags: UInt8 = 0
    if rate > UInt8.max { flags |= Flags.isWide }
    if contact != .unknown { flags |= Flags.contactSupported }
    if contact == .detected { flags |= Flags.contactDetected }
    if energy != nil { flags |= Flags.hasEnergy }
    if !intervals.isEmpty { flags |= Flags.hasIntervals }
    var value = Data([flags])
    if rate > UInt8.max {
      value.append(littleEndian: rate)
    } else {
      value.append(UInt8(truncatingIfNeeded: rate))
    }
    if let energy { value.append(littleEndian: energy) }
    for interval in intervals { value.append(littleEndian: interval) }
    return value
  }
}

extension HeartRateMeasurement: CustomStringConvertible {
  public var description: String {
    var parts = ["\(rate) bpm"]
    switch contact {
    case .unknown: break
    case .lost: parts.append("no skin contact")
    case .detected: parts.append("skin contact")
    }
    if let energy { parts.append("\(energy) kJ") }
    if !intervals.isEmpty {
      let milliseconds = intervals.map { "\((Int($0) * 1000 + 512) / 1024)" }
      parts.append("beats \(milliseconds.joined(separator: ", ")) ms apart")
    }
    return parts.joined(separator: ", ")
  }
}
