import VirtualRadio

/// Ceilings in kbit/s of payload, computed apart from this package and checked against a real link layer.
///
/// They count the whole writes or SDUs of the first 2000 connection events.
struct CeilingCell: CustomStringConvertible, Sendable {
  enum Carrier: Sendable {
    case writes(mtu: Int)
    case channel(mps: Int, sdu: Int)
  }

  var phy: PHY
  var carrier: Carrier
  var dataLength = 251
  /// Milliseconds.
  var interval: Double
  var cap: Int?
  var kilobits: Double

  static let events = 2000

  var parameters: LinkParameters {
    var parameters = LinkParameters(
      phy: phy, dataLength: dataLength, connectionInterval: .microseconds(Int(interval * 1000)),
      packetsPerEvent: cap)
    if case .writes(let mtu) = carrier { parameters.attMTU = mtu }
    return parameters
  }

  var flow: LinkCeiling.Flow {
    switch carrier {
    case .writes: LinkCeiling(parameters).writesWithoutResponse()
    case .channel(let mps, let sdu): LinkCeiling(parameters).channel(sdu: sdu, mps: mps)
    }
  }

  /// Octets of the L2CAP frames of one write or SDU, with their headers.
  var unit: [Int] {
    switch carrier {
    case .writes(let mtu): return [mtu + 4]
    case .channel(let mps, let sdu):
      return stride(from: 0, to: sdu + 2, by: mps).map { 4 + min(mps, sdu + 2 - $0) }
    }
  }

  var description: String {
    let cap = cap.map { ", at most \($0) packets" } ?? ""
    return "\(phy) \(carrier) in \(dataLength), \(interval) ms\(cap)"
  }

  static let all: [CeilingCell] = writes + channels + capped

  private static let writes = table(
    intervals: [7.5, 15, 30, 50, 100, 400],
    [
      (.le1M, .writes(mtu: 23), 27, [234.7, 234.7, 234.7, 233.6, 235.2, 236.4]),
      (.le1M, .writes(mtu: 185), 27, [305.0, 305.0, 305.1, 303.7, 305.8, 307.3]),
      (.le1M, .writes(mtu: 185), 251, [582.4, 679.5, 728.0, 728.0, 728.0, 735.3]),
      (.le1M, .writes(mtu: 247), 27, [286.3, 286.3, 292.8, 292.8, 294.8, 295.2]),
      (.le1M, .writes(mtu: 247), 251, [780.8, 780.8, 780.8, 780.8, 780.8, 790.6]),
      (.le1M, .writes(mtu: 498), 251, [792.0, 792.0, 792.0, 792.0, 792.0, 801.9]),
      (.le1M, .writes(mtu: 517), 251, [548.3, 685.3, 685.3, 740.2, 740.2, 740.2]),
      (.le2M, .writes(mtu: 23), 27, [320.0, 320.0, 320.0, 320.0, 321.6, 322.4]),
      (.le2M, .writes(mtu: 185), 27, [415.9, 416.0, 416.0, 416.0, 418.1, 419.1]),
      (.le2M, .writes(mtu: 185), 251, [1164.8, 1261.9, 1261.9, 1252.2, 1266.7, 1270.4]),
      (.le2M, .writes(mtu: 247), 27, [390.4, 390.4, 396.9, 398.2, 398.2, 399.6]),
      (.le2M, .writes(mtu: 247), 251, [1301.3, 1301.3, 1366.4, 1366.4, 1385.9, 1400.6]),
      (.le2M, .writes(mtu: 498), 251, [1320.0, 1320.0, 1386.0, 1386.0, 1405.8, 1420.6]),
      (.le2M, .writes(mtu: 517), 251, [1096.5, 1233.6, 1233.6, 1233.6, 1254.2, 1264.4]),
      (.codedS2, .writes(mtu: 23), 27, [85.3, 96.0, 96.0, 96.0, 96.0, 96.4]),
      (.codedS2, .writes(mtu: 185), 27, [110.9, 124.8, 124.8, 124.8, 124.8, 125.3]),
      (.codedS2, .writes(mtu: 185), 251, [194.1, 291.2, 339.7, 320.3, 334.9, 342.2]),
      (.codedS2, .writes(mtu: 247), 27, [104.1, 117.1, 117.1, 117.1, 119.1, 119.8]),
      (.codedS2, .writes(mtu: 247), 251, [260.3, 260.3, 325.3, 351.4, 370.9, 370.9]),
      (.codedS2, .writes(mtu: 498), 251, [264.0, 264.0, 330.0, 356.4, 376.2, 376.2]),
      (.codedS2, .writes(mtu: 517), 251, [274.1, 274.1, 319.8, 329.0, 329.0, 339.2]),
      (.codedS8, .writes(mtu: 23), 27, [42.7, 42.7, 42.7, 44.8, 44.8, 46.0]),
      (.codedS8, .writes(mtu: 185), 27, [55.4, 55.4, 55.4, 58.2, 58.2, 59.8]),
      (.codedS8, .writes(mtu: 185), 251, [0, 97.1, 97.1, 87.4, 101.9, 101.9]),
      (.codedS8, .writes(mtu: 247), 27, [52.1, 52.1, 57.8, 56.4, 56.6, 58.1]),
      (.codedS8, .writes(mtu: 247), 251, [0, 0, 65.1, 78.1, 97.6, 107.4]),
      (.codedS8, .writes(mtu: 498), 251, [0, 0, 66.0, 79.2, 99.0, 108.9]),
      (.codedS8, .writes(mtu: 517), 251, [0, 0, 68.5, 82.2, 102.8, 102.8]),
    ])

  private static let channels = table(
    intervals: [7.5, 15, 30, 50, 100],
    [
      (.le1M, .channel(mps: 23, sdu: 512), 251, [261.1, 261.2, 261.2, 263.5, 264.4]),
      (.le1M, .channel(mps: 247, sdu: 245), 251, [784.0, 784.0, 784.0, 784.0, 784.0]),
      (.le1M, .channel(mps: 247, sdu: 1024), 251, [655.4, 682.7, 750.9, 737.3, 757.8]),
      (.le1M, .channel(mps: 247, sdu: 4096), 251, [769.0, 770.0, 770.6, 770.7, 790.2]),
      (.le1M, .channel(mps: 247, sdu: 65535), 251, [768.9, 786.4, 786.4, 786.4, 789.0]),
      (.le1M, .channel(mps: 498, sdu: 4096), 251, [769.0, 770.0, 770.6, 778.2, 790.2]),
      (.le1M, .channel(mps: 2048, sdu: 65535), 251, [699.0, 716.5, 742.7, 775.9, 781.2]),
      (.le2M, .channel(mps: 23, sdu: 512), 251, [356.1, 356.1, 356.1, 359.7, 359.7]),
      (.le2M, .channel(mps: 247, sdu: 245), 251, [1306.7, 1306.7, 1372.0, 1372.0, 1391.6]),
      (.le2M, .channel(mps: 247, sdu: 1024), 251, [1092.3, 1228.8, 1297.1, 1310.7, 1331.2]),
      (.le2M, .channel(mps: 247, sdu: 4096), 251, [1284.5, 1365.3, 1365.3, 1387.7, 1407.1]),
      (.le2M, .channel(mps: 247, sdu: 65535), 251, [1293.2, 1310.7, 1380.6, 1384.1, 1402.4]),
      (.le2M, .channel(mps: 1000, sdu: 4096), 251, [1284.5, 1365.3, 1365.3, 1392.6, 1407.1]),
      (.codedS2, .channel(mps: 247, sdu: 4096), 251, [255.6, 273.1, 341.3, 346.7, 366.2]),
      (.codedS2, .channel(mps: 247, sdu: 65535), 251, [244.7, 262.1, 323.3, 351.3, 372.2]),
      (.codedS8, .channel(mps: 247, sdu: 4096), 251, [0, 0, 68.3, 81.9, 96.3]),
      (.codedS8, .channel(mps: 498, sdu: 4096), 251, [0, 0, 68.3, 81.9, 102.4]),
    ])

  private static let capped: [CeilingCell] =
    table(
      intervals: [7.5, 15, 30, 50],
      [
        (.le1M, .writes(mtu: 247), 251, [260.3, 130.1, 65.1, 39.0]),
        (.le2M, .writes(mtu: 247), 251, [260.3, 130.1, 65.1, 39.0]),
      ], cap: 1)
    + table(
      intervals: [7.5, 15, 30, 50],
      [
        (.le1M, .writes(mtu: 247), 251, [780.8, 520.5, 260.3, 156.2]),
        (.le2M, .writes(mtu: 247), 251, [1041.1, 520.5, 260.3, 156.2]),
      ], cap: 4)
    + table(
      intervals: [7.5, 15, 30, 50],
      [
        (.le1M, .writes(mtu: 247), 251, [780.8, 780.8, 390.4, 234.2]),
        (.le2M, .writes(mtu: 247), 251, [1301.3, 780.8, 390.4, 234.2]),
      ], cap: 6)
    + table(
      intervals: [7.5, 15, 30, 50],
      [
        (.le1M, .writes(mtu: 247), 251, [780.8, 780.8, 650.7, 390.4]),
        (.le2M, .writes(mtu: 247), 251, [1301.3, 1301.3, 650.7, 390.4]),
      ], cap: 10)
    + table(
      intervals: [7.5, 11.25, 15, 30, 50],
      [(.le1M, .writes(mtu: 23), 27, [85.3, 56.9, 42.7, 21.3, 12.8])], cap: 4)
    + table(
      intervals: [7.5, 11.25, 15, 30, 50],
      [(.le1M, .writes(mtu: 23), 27, [128.0, 85.3, 64.0, 32.0, 19.2])], cap: 6)

  private typealias Row = (phy: PHY, carrier: Carrier, dataLength: Int, kilobits: [Double])

  private static func table(intervals: [Double], _ rows: [Row], cap: Int? = nil) -> [CeilingCell] {
    rows.flatMap { row in
      zip(intervals, row.kilobits).map { interval, kilobits in
        CeilingCell(
          phy: row.phy, carrier: row.carrier, dataLength: row.dataLength, interval: interval, cap: cap,
          kilobits: kilobits)
      }
    }
  }
}
