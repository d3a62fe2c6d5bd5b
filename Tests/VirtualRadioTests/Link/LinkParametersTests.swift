import Testing

@testable import VirtualRadio

@Suite("Link parameters") struct LinkParametersTests {
  @Test(
    "words are read",
    arguments: [
      ("", LinkParameters()),
      ("  ", LinkParameters()),
      (
        "phy=2M,mtu=247,dle=251,interval=30,per=0.01",
        LinkParameters(attMTU: 247, connectionInterval: .milliseconds(30), packetErrorRate: 0.01)
      ),
      (
        " PHY = 1m , interval = 7.5ms , per = 2% ",
        LinkParameters(phy: .le1M, connectionInterval: .microseconds(7500), packetErrorRate: 0.02)
      ),
      (
        "phy=S8,dle=27,interval=1s,packets=3,encrypted=yes,rssi=-90,queue=4,mtu-delay=500,timeout=20s",
        LinkParameters(
          phy: .codedS8, dataLength: 27, connectionInterval: .seconds(1), packetsPerEvent: 3,
          isEncrypted: true, supervisionTimeout: .seconds(20), rssi: -90, queueDepth: 4,
          mtuExchangeDelay: .milliseconds(500))
      ),
      (
        "interval=400",
        LinkParameters(connectionInterval: .milliseconds(400), supervisionTimeout: .milliseconds(2400))
      ),
      ("packets=any,queue=auto,mtu-delay=none,encrypted=no", LinkParameters()),
    ])
  func reads(_ words: String, _ expected: LinkParameters) throws {
    #expect(try LinkParameters(parsing: words) == expected)
  }

  @Test(
    "what is wrong is named: the key, the value and what would do",
    arguments: [
      ("phy=3M", "phy=3M: is not a PHY: use 1M, 2M, S2 or S8"),
      ("mtu=22", "mtu=22: must be 23...517"),
      ("mtu=518", "mtu=518: must be 23...517"),
      ("mtu=many", "mtu=many: is not a whole number"),
      ("dle=252", "dle=252: must be 27...251"),
      ("interval=31", "interval=31: must be a multiple of 1.25 ms, such as 30 or 31.25"),
      ("interval=5", "interval=5: must be 7.5...4000 ms"),
      (
        "interval=-5",
        "interval=-5: is not a time of whole microseconds; write milliseconds, or a number with ms, s or min"
      ),
      (
        "interval=1e9",
        "interval=1e9: is not a time of whole microseconds; write milliseconds, or a number with ms, s or min"
      ),
      (
        "interval=nan",
        "interval=nan: is not a time of whole microseconds; write milliseconds, or a number with ms, s or min"
      ),
      (
        "interval=7.5000000001",
        "interval=7.5000000001: is not a time of whole microseconds; write milliseconds, or a number with ms, s or min"
      ),
      (
        "interval=7.5004",
        "interval=7.5004: is not a time of whole microseconds; write milliseconds, or a number with ms, s or min"
      ),
      (
        "interval=99999999999999999999",
        "interval=99999999999999999999: is not a time of whole microseconds; write milliseconds, or a number with ms, s or min"
      ),
      (
        "timeout=0.00000001min",
        "timeout=0.00000001min: is not a time of whole microseconds; write milliseconds, or a number with ms, s or min"
      ),
      ("per=1", "per=1: must be 0...0.99"),
      ("per=100%", "per=100%: must be 0...0.99"),
      ("per=inf", "per=inf: is not a number; write a fraction such as 0.01, or 1%"),
      ("timeout=50", "timeout=50: must be 100...32000 ms"),
      ("timeout=105", "timeout=105: must be a multiple of 10 ms"),
      (
        "interval=400,timeout=800",
        "timeout=800: must be longer than two connection intervals of 400 ms"
      ),
      ("rssi=30", "rssi=30: must be -127...20"),
      ("queue=0", "queue=0: must be 1...10000"),
      ("encrypted=maybe", "encrypted=maybe: must be yes or no"),
      ("mtu", "mtu: has no value; write mtu=VALUE"),
      ("mtu=", "mtu: has no value; write mtu=VALUE"),
      ("mtu=100,mtu=200", "mtu=200: was given twice"),
      ("mtu=100,,dle=27", "\"\": an item is empty; items are key=value"),
      (
        "intervall=30",
        "intervall: no such key (did you mean interval?); there are phy, mtu, dle, interval, packets, encrypted, per,"
          + " timeout, rssi, queue, mtu-delay"
      ),
      (
        "phy=S8,interval=7.5",
        "interval=7.5: is shorter than one exchange of 251 octets on PHY S8, which takes 17.804 ms: use"
          + " interval=18.75 or dle=90"
      ),
    ])
  func refuses(_ words: String, _ message: String) {
    let error = #expect(throws: SettingError.self) { try LinkParameters(parsing: words) }
    #expect(error?.description == message)
  }

  @Test("the description is read back as the same value", arguments: 1...50)
  func roundTrip(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    func maybe<Value>(_ value: Value) -> Value? { Bool.random(using: &generator) ? value : nil }
    let parameters = LinkParameters(
      phy: [.le1M, .le2M].randomElement(using: &generator) ?? .le1M,
      dataLength: .random(in: 27...251, using: &generator), attMTU: .random(in: 23...517, using: &generator),
      connectionInterval: .microseconds(1250 * Int.random(in: 6...3200, using: &generator)),
      packetsPerEvent: maybe(7), isEncrypted: .random(using: &generator),
      packetErrorRate: maybe(Double.random(in: 0...0.99, using: &generator)) ?? 1e-6,
      supervisionTimeout: maybe(.milliseconds(32_000)), rssi: .random(in: -127...20, using: &generator),
      queueDepth: maybe(12), mtuExchangeDelay: maybe(.milliseconds(250)))
    #expect(try LinkParameters(parsing: parameters.description) == parameters)
  }

  @Test("the default supervision timeout is valid at every interval", arguments: [6, 95, 97, 101, 3200])
  func defaultTimeout(_ steps: Int) throws {
    try LinkParameters(connectionInterval: .microseconds(1250 * steps)).validate()
  }

  @Test("merging takes the smaller limits and the worse air")
  func merging() {
    let left = LinkParameters(
      phy: .le1M, dataLength: 251, attMTU: 185, packetsPerEvent: 4, packetErrorRate: 0.1, rssi: -40)
    let right = LinkParameters(
      phy: .le2M, dataLength: 100, attMTU: 517, isEncrypted: true, rssi: -70, queueDepth: 3)
    let merged = left.merged(with: right)
    #expect(
      merged
        == LinkParameters(
          phy: .le1M, dataLength: 100, attMTU: 185, packetsPerEvent: 4, isEncrypted: true,
          packetErrorRate: 0.1, rssi: -70, queueDepth: 3))
  }
}

@Suite("Air time") struct AirTimeTests {
  @Test(
    "packets last as the specification has it",
    arguments: [
      (PHY.le1M, 0, false, 80), (.le1M, 27, false, 296), (.le1M, 251, false, 2088), (.le1M, 251, true, 2120),
      (.le2M, 0, true, 44), (.le2M, 251, false, 1048), (.le2M, 251, true, 1064), (.codedS2, 0, false, 462),
      (.codedS2, 27, false, 894), (.codedS2, 251, false, 4478), (.codedS2, 251, true, 4542),
      (.codedS8, 0, false, 720), (.codedS8, 27, false, 2448), (.codedS8, 251, false, 16784),
      (.codedS8, 251, true, 17040),
    ])
  func packets(_ phy: PHY, _ octets: Int, _ isEncrypted: Bool, _ microseconds: Int) {
    #expect(
      AirTime.packet(octets: octets, phy: phy, isEncrypted: isEncrypted) == .microseconds(microseconds))
  }

  @Test("an exchange is two packets and two pauses")
  func pair() {
    #expect(AirTime.pair(centralOctets: 251, phy: .le2M) == .microseconds(1392))
    #expect(AirTime.pair(centralOctets: 251, peripheralOctets: 251, phy: .le2M) == .microseconds(2396))
  }
}
