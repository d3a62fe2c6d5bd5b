import Foundation
import SampleData
import Testing

/// Values of devices, right and wrong.
@Suite struct SampleDataTests {
  @Test("a number is read whole or not at all", arguments: 0...9)
  func readsNumbers(count: Int) {
    let octets = (0..<count).map { UInt8($0 + 0xF0) }
    // A part of something larger, whose indices do not start at zero.
    let value = Data([1, 2, 3] + octets).dropFirst(3)
    func check<Number: FixedWidthInteger>(_ type: Number.Type) {
      var reader = LittleEndianReader(value)
      let size = MemoryLayout<Number>.size
      let expected =
        size <= count ? octets.prefix(size).reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) } : nil
      #expect(reader.read(type) == expected.map { Number(truncatingIfNeeded: $0) })
      #expect(reader.remaining == (size <= count ? count - size : count))
    }
    check(UInt8.self)
    check(Int8.self)
    check(UInt16.self)
    check(Int16.self)
    check(UInt32.self)
    check(UInt64.self)
  }

  @Test func readsOctets() {
    var reader = LittleEndianReader(Data([1, 2, 3]))
    #expect(reader.read(octets: -1) == nil)
    #expect(reader.read(octets: 4) == nil)
    #expect(reader.read(octets: .max) == nil)
    #expect(reader.read(octets: 2) == Data([1, 2]))
    #expect(reader.read(octets: 0) == Data())
    #expect(reader.read(octets: 1) == Data([3]))
    #expect(reader.remaining == 0)
  }

  @Test(arguments: [0, 1, 0x80, 0xFF00, 0x1234, 0xFFFF] as [UInt16])
  func writesWhatItReads(number: UInt16) {
    var value = Data()
    value.append(littleEndian: number)
    #expect(value == Data([UInt8(number & 0xFF), UInt8(number >> 8)]))
    var reader = LittleEndianReader(value)
    #expect(reader.read() == number)
  }

  // MARK: Heart rate

  /// A measurement by the book, for any flags.
  private func value(flags: UInt8, intervals: Int) -> Data {
    var octets: [UInt8] = [flags]
    octets += flags & 1 != 0 ? [0x2C, 0x01] : [0x48]
    if flags & 8 != 0 { octets += [0x10, 0x27] }
    for i in 0..<intervals { octets += [UInt8(i), 0x04] }
    return Data(octets)
  }

  @Test(
    "every combination of flags, also of those without a meaning yet",
    arguments: 0...255 as ClosedRange<UInt8>)
  func readsMeasurements(flags: UInt8) throws {
    let hasIntervals = flags & 16 != 0
    for count in hasIntervals ? [1, 2, 9] : [0] {
      let whole = value(flags: flags, intervals: count)
      let measurement = try #require(HeartRateMeasurement(whole))
      #expect(measurement.rate == (flags & 1 != 0 ? 300 : 72))
      #expect(measurement.energy == (flags & 8 != 0 ? 10_000 : nil))
      #expect(measurement.contact == [.unknown, .unknown, .lost, .detected][Int(flags >> 1 & 3)])
      #expect(measurement.intervals == (0..<UInt16(count)).map { 1024 + $0 })
      #expect(HeartRateMeasurement(measurement.value) == measurement)
      // Cut anywhere, it is no measurement; but for whole intervals fewer, of which a value does not tell the number.
      for length in 0..<whole.count {
        let missing = whole.count - length
        let isShorterList = hasIntervals && missing % 2 == 0 && missing / 2 < count
        #expect((HeartRateMeasurement(whole.prefix(length)) != nil) == isShorterList)
      }
      #expect(HeartRateMeasurement(whole + [0]) == nil)
    }
    // Intervals that the flags promise, and that do not come.
    if hasIntervals { #expect(HeartRateMeasurement(value(flags: flags, intervals: 0)) == nil) }
  }

  @Test(arguments: [0, 1, 255, 256, 65535] as [UInt16], HeartRateMeasurement.Contact.allCases)
  func writesMeasurements(rate: UInt16, contact: HeartRateMeasurement.Contact) {
    for energy in [nil, 0, 65535] as [UInt16?] {
      for intervals in [[], [0], [65535, 1]] as [[UInt16]] {
        let measurement = HeartRateMeasurement(
          rate: rate, contact: contact, energy: energy, intervals: intervals)
        #expect(HeartRateMeasurement(measurement.value) == measurement)
        #expect(
          measurement.value.count == (rate > 255 ? 3 : 2) + (energy == nil ? 0 : 2) + 2 * intervals.count)
      }
    }
  }

  @Test func describesMeasurements() {
    #expect("\(HeartRateMeasurement(rate: 60))" == "60 bpm")
    #expect(
      "\(HeartRateMeasurement(rate: 61, contact: .lost, energy: 5, intervals: [512, 1000]))"
        == "61 bpm, no skin contact, 5 kJ, beats 500, 977 ms apart")
  }

  @Test(
    arguments: [([], nil), ([0], 0), ([100], 100), ([101], nil), ([255], nil), ([50, 0], nil)]
      as [([UInt8], UInt8?)])
  func readsBatteryLevels(octets: [UInt8], percent: UInt8?) {
    #expect(BatteryLevel(Data(octets))?.percent == percent)
  }

  @Test(
    arguments: [([], nil), ([0], .other), ([1], .chest), ([6], .foot), ([7], nil), ([1, 1], nil)]
      as [([UInt8], BodySensorLocation?)])
  func readsSensorLocations(octets: [UInt8], location: BodySensorLocation?) {
    #expect(BodySensorLocation(Data(octets)) == location)
  }
}
