import Foundation
import RealStack
import Testing

/// The tests that run in the virtual machine. To add one: give it the condition of StackFactsTests, and name it here.
///
/// Each group is one boot, about 5 s, in which its tests run; tests that disturb the stack want one of their own. What takes minutes each is run by hand:
/// interruptions of a push, a megabyte each way over a channel, and writes in great numbers.
struct GuestSuites: Sendable, CustomTestStringConvertible {
  let name: String
  /// As `Target.Suite` or `Target.Suite/test`; each has to run at least one test.
  let tests: [String]
  var controllers = 2
  /// Of the whole group, after the boot.
  var timeLimit = Duration.seconds(600)

  var testDescription: String { name }

  /// Whether those that take long are wanted, too.
  static var isWhole: Bool { ProcessInfo.processInfo.environment["REAL_STACK"] == "whole" }

  static let all =
    [
      GuestSuites(name: "facts", tests: ["GuestTests.StackFactsTests"]),
      GuestSuites(name: "channels of the kernel", tests: ["BlueZRadioTests.KernelL2CAPTests"]),
      GuestSuites(
        name: "encrypted channels of the kernel", tests: ["BlueZRadioTests.EncryptedKernelL2CAPTests"]),
      GuestSuites(name: "server", tests: ["GuestTests.ServerTests"]),
      GuestSuites(name: "links", tests: ["RadioContractTests.ConnectionTests"], controllers: 3),
      GuestSuites(name: "tool", tests: ["push", "name"].map { "GuestTests.ToolTests/\($0)" }),
      GuestSuites(name: "tool looks", tests: ["GuestTests.ToolLookTests"]),
    ]
    // Programs each: what the adapters remember of each other from earlier ones is in the way of a scan.
    + [
      ("HostRadioProgramTests/scanWithFilters", 5),
      ("HostRadioProgramTests/heartRate", 2),
      ("HostRadioProgramTests/readWriteNotify", 2),
      ("HostRadioProgramTests/writeFlowControl", 2),
      ("HostRadioProgramTests/channel", 2),
      ("HostRadioProgramTests/severalPeripherals", 4),
      ("HostRadioProgramTests/reconnect", 2),
      ("HostRadioRestorationTests/aCentralThatIsKilledGoesOn", 2),
      ("HostRadioRestorationTests/aPeripheralThatIsKilledGoesOn", 2),
    ].map { test, controllers in
      GuestSuites(
        name: "sample \(test.split(separator: "/")[1])", tests: ["SampleTests.\(test)"],
        controllers: controllers)
    }

  /// With `REAL_STACK=whole` only: what takes the time of all others again.
  static let long = [
    // Scans after a loss of power find nothing: the controllers are not as before.
    GuestSuites(
      name: "lost links",
      tests: ["LostLinkTests", "LinkWatchTests"].map { "RadioContractTests.\($0)" },
      controllers: 3),
    GuestSuites(
      name: "scans, writes and channels",
      tests: [
        "ScanTests", "ChannelTests", "WriteTests/valuesOfEverySizeArriveWholeWithResponse",
        "WriteTests/valuesOfEverySizeArriveWholeWithoutResponse",
        "WriteTests/commandsAndRequestsComeInTheirOrder", "WriteTests/aCallerOnAnotherQueueMissesNoSignal",
        "WriteTests/indicationsArriveAndNobodyListeningIsNoFailure",
      ].map { "RadioContractTests.\($0)" }),
    GuestSuites(name: "daemon", tests: ["BlueZRadioTests.RealDaemonTests"]),
    GuestSuites(
      name: "several devices",
      tests: ["BlueZRadioTests.SeveralDevicesTests", "GuestTests.ToolTwinTests"], controllers: 3),
    GuestSuites(
      name: "Core Bluetooth",
      tests: ["GuestTests.HostStackTests"]
        + ["psms", "longWrites"].map { "GuestTests.HostChannelTests/\($0)" }),
    GuestSuites(name: "whole tool", tests: ["GuestTests.ToolTests"]),
  ]

  /// Those with software of others, where that is installed.
  static func with(_ software: ForeignSoftware) -> [GuestSuites] {
    switch software {
    case .bleak:
      (isWhole ? ["notebook", "haul"] : ["notebook"]).map {
        GuestSuites(name: "bleak \($0)", tests: ["ForeignPeerTests.BleakTests/\($0)"])
      }
    // Two devices with one address: what bluetoothd remembers of one it takes for the other's.
    case .bumble:
      ["device", "haul"].map {
        GuestSuites(name: "Bumble \($0)", tests: ["ForeignPeerTests.BumbleTests/\($0)"])
      }
    }
  }
}
