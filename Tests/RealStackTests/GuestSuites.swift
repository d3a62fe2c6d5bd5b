import RealStack
import Testing

/// The tests that run in the virtual machine. To add one: give it the condition of StackFactsTests, and name it here.
///
/// Each group is one boot, about 5 s, in which its tests run; tests that disturb the stack want one of their own.
struct GuestSuites: Sendable, CustomTestStringConvertible {
  let name: String
  /// As `Target.Suite` or `Target.Suite/test`; each has to run at least one test.
  let tests: [String]
  var controllers = 2
  /// Of the whole group, after the boot.
  var timeLimit = Duration.seconds(300)

  var testDescription: String { name }

  static let all =
    [
      GuestSuites(name: "facts", tests: ["GuestTests.StackFactsTests"]),
      GuestSuites(
        name: "channels of the kernel",
        tests: [
          "carries", "stalls", "closes", "closesInTheMiddle", "refuses", "tester", "testerListens",
          "losesLink",
        ].map { "BlueZRadioTests.KernelL2CAPTests/\($0)" }),
      // Pairing that nobody answers leaves the adapters unable to link again.
      GuestSuites(
        name: "encrypted channels", tests: ["BlueZRadioTests.KernelL2CAPTests/wantsEncryption"]),
      GuestSuites(name: "server", tests: ["GuestTests.ServerTests"]),
      GuestSuites(name: "links", tests: ["RadioContractTests.ConnectionTests"], controllers: 3),
      GuestSuites(name: "tool", tests: ["GuestTests.ToolTests"], timeLimit: .seconds(300)),
    ]
    // A pair of programs each: what the adapters remember of each other from an earlier one is in the way of a scan.
    + ["readWriteNotify", "channel"].map {
      GuestSuites(name: "sample \($0)", tests: ["SampleTests.HostRadioProgramTests/\($0)"])
    }
}
