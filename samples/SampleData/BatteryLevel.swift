public import Foundation

/// A value of the characteristic Battery Level, 0x2A19 (GATT Specification Supplement).
public struct BatteryLevel: Hashable, Sendable {
  /// 0 to 100.
  public let percent: UInt8

  /// Reads a value; nil where it is not one octet of at most 100.
  public init?(_ value: Data) {
    var reader = LittleEndianReader(value)
    guard let percent: UInt8 = reader.read(), percent <= 100, reader.remaining == 0 else { return nil }
    self.percent = percent
  }
}

/// A value of the characteristic Body Sensor Location, 0x2A38 (GATT Specification Supplement).
public enum BodySensorLocation: UInt8, Sendable, CaseIterable {
  case other, chest, wrist, finger, hand, earLobe, foot

  /// Reads a value; nil where it is not one octet with a meaning.
  public init?(_ value: Data) {
    var reader = LittleEndianReader(value)
    guard let number: UInt8 = reader.read(), reader.remaining == 0 else { return nil }
    self.init(rawValue: number)
  }
}
