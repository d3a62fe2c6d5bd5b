import TestSupport
import Testing

@testable import VirtualRadio

@Suite("Advice on links") struct LinkAdviceTests {
  private func advice(
    _ words: String, _ traffic: LinkCeiling.Traffic
  ) throws -> [LinkAdvice] {
    LinkAdvice.advice(on: try LinkParameters(parsing: words), for: traffic)
  }

  @Test(
    "nothing is said of a link that wastes nothing",
    arguments: ["", "interval=50,mtu=498", "interval=100", "encrypted=yes", "packets=100"],
    [LinkCeiling.Traffic.commands, .notifications, .channel])
  func good(words: String, traffic: LinkCeiling.Traffic) throws {
    #expect(try advice(words, traffic) == [])
  }

  @Test(
    "what wastes a link is named, with a word of why",
    arguments: [
      ("dle=27", .commands, [.dataLength], "10 packets carry what 1 of up to 251 octets could"),
      ("dle=27", .channel, [.dataLength], "data length 27"),
      ("mtu=517", .commands, [.attMTU], "behind 2 full packets each value needs one of 17 octets"),
      ("mtu=300", .commands, [.attMTU], "behind 1 full packet each value needs one of 53 octets"),
      ("mtu=100", .commands, [.attMTU], "carries 97 octets, where it could carry 244"),
      ("mtu=23,dle=27", .commands, [.attMTU], "ATT MTU 23 and data length 27"),
      ("mtu=517", .channel, [], ""),
      ("phy=1M", .commands, [.phy], "2M"),
      ("phy=S8,interval=90", .channel, [.phy], "distance"),
      ("packets=1", .commands, [.packetsPerEvent], "1 packet in an event of 30 ms"),
      ("packets=4,interval=50", .channel, [.packetsPerEvent], "4 packets in an event of 50 ms"),
      ("packets=4,interval=7.5", .commands, [.packetsPerEvent], "use a controller that sends more"),
      ("phy=1M,mtu=185,interval=7.5", .notifications, [.attMTU, .phy, .interval], "left over"),
      ("per=0.1,interval=100", .commands, [.interval], "two packets lost in a row end an event"),
      ("", .requests, [.interval], "wait for an event of their own"),
    ] as [(String, LinkCeiling.Traffic, [LinkAdvice.Parameter], String)])
  func waste(
    words: String, traffic: LinkCeiling.Traffic, parameters: [LinkAdvice.Parameter], why: String
  ) throws {
    let found = try advice(words, traffic)
    #expect(found.map(\.parameter).filter { parameters.contains($0) } == parameters, "\(found)")
    #expect(Set(found.map(\.parameter)).subtracting(parameters).isEmpty, "\(found)")
    #expect(why.isEmpty || found.contains { $0.message.contains(why) }, "\(found.map(\.message))")
  }

  @Test(
    "each advice holds: the link that it names is valid, and better by what it says",
    arguments: ["1M", "2M", "S2", "S8"], LinkCeiling.Traffic.allCases)
  func gains(phy: String, traffic: LinkCeiling.Traffic) throws {
    for lengths in Sweep.part(of: ["mtu=185,dle=100", "mtu=23,dle=27", "mtu=517,dle=251"]) {
      for rest in ["interval=30,packets=2", "interval=400", "interval=50,per=0.2"] {
        let link = try LinkParameters(parsing: "phy=\(phy),\(lengths),\(rest)")
        let ceiling = LinkCeiling(link).octetsPerSecond(of: traffic)
        for advice in LinkAdvice.advice(on: link, for: traffic) {
          try advice.better.validate()
          #expect(LinkCeiling(advice.better).octetsPerSecond(of: traffic) == advice.ceiling)
          #expect(advice.ceiling >= 1.03 * ceiling, "\(link): \(advice)")
          #expect(!advice.message.isEmpty)
        }
      }
    }
  }

  /// A request waits for its response as long as an event comes, so the ceiling is one unit in two events where it fits one.
  @Test(
    "requests are one in two events, or more where one event does not hold them",
    arguments: [
      ("interval=30", 244, 60), ("interval=7.5", 244, 15), ("mtu=517,interval=30", 512, 60),
      ("mtu=517,dle=27,interval=7.5,packets=4", 512, 45),
    ] as [(String, Double, Double)])
  func requests(words: String, payload: Double, milliseconds: Double) throws {
    let rate = LinkCeiling(try LinkParameters(parsing: words)).octetsPerSecond(of: .requests)
    let expected = payload * 1000 / milliseconds
    #expect(abs(rate - expected) < 0.001 * expected, "\(rate) for \(expected)")
  }
}
