// swift-tools-version: 6.2
import PackageDescription

/// One block of settings for every target of the package.
let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),  // SE-0458
  .treatAllWarnings(as: .error),  // SE-0443
  .enableUpcomingFeature("ExistentialAny"),  // SE-0335
  .enableUpcomingFeature("InternalImportsByDefault"),  // SE-0409
  .enableUpcomingFeature("MemberImportVisibility"),  // SE-0444
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),  // SE-0461
  .enableUpcomingFeature("InferIsolatedConformances"),  // SE-0470
]

/// Samples are ordinary programs.
let sampleSettings: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

/// Apple platforms have their own CoreBluetooth: there the radios and our module are left out.
#if os(Linux)
  let coreBluetooth: [Target.Dependency] = ["CoreBluetooth"]
  let linux: [Target.Dependency] = ["CLinux"]
#else
  let coreBluetooth: [Target.Dependency] = []
  let linux: [Target.Dependency] = []
#endif

var products: [Product] = [
  .library(name: "BulkTransfer", targets: ["BulkTransfer"])
]

var targets: [Target] = [
  // C: system libraries and the one folder of our own shims.
  .systemLibrary(
    name: "CCrypto", pkgConfig: "libcrypto",
    providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
  .systemLibrary(
    name: "CISAL", pkgConfig: "libisal",
    providers: [.apt(["libisal-dev"]), .brew(["isa-l"])]),
  .systemLibrary(
    name: "CZstd", pkgConfig: "libzstd",
    providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),

  // A mutex that the thread sanitizer understands, and flock(2).
  .target(name: "Locking", swiftSettings: settings),

  // Why a system call failed.
  .target(name: "SystemCalls", swiftSettings: settings),

  // What is said to people: text that is safe to print, and the word that was meant.
  .target(name: "Wording", swiftSettings: settings),
  .testTarget(name: "WordingTests", dependencies: ["Wording"], swiftSettings: settings),

  // The engine: image files, manifests, windows, sessions. Knows CoreBluetooth and no radio.
  .target(
    name: "BulkTransfer",
    dependencies: ["Locking", "SystemCalls", "Wording", "CCrypto", "CISAL", "CZstd"] + coreBluetooth
      + linux,
    swiftSettings: settings),
  .testTarget(
    name: "BulkTransferTests", dependencies: ["BulkTransfer", "Locking", "SystemCalls", "TestSupport"],
    swiftSettings: settings),

  // Folders of tests, and how much of a sweep runs.
  .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),

  // What samples read from values of devices.
  .target(name: "SampleData", path: "samples/SampleData", swiftSettings: settings),
]

// Programs that show Core Bluetooth in use: samples/README.md.
for name in [
  "answering-peripheral", "heart-rate-monitor", "heart-rate-sensor", "l2cap-client", "l2cap-server",
  "read-write-notify", "reconnect", "restoring-central", "restoring-peripheral", "scan-with-filters",
  "several-peripherals", "write-flow-control",
] {
  targets.append(
    .executableTarget(
      name: "sample-\(name)", dependencies: coreBluetooth + ["SampleData"], path: "samples/\(name)",
      swiftSettings: sampleSettings))
}

#if os(Linux)
  products += [
    .library(name: "CoreBluetooth", targets: ["CoreBluetooth"]),
    .library(name: "Radio", targets: ["Radio"]),
    .library(name: "VirtualRadio", targets: ["VirtualRadio"]),
    .library(name: "BlueZRadio", targets: ["BlueZRadio"]),
    .library(name: "DBus", targets: ["DBus"]),
    .executable(name: "bluehaul", targets: ["bluehaul"]),
    // For Benchmarks, a package of its own.
    .library(name: "BluehaulTool", targets: ["BluehaulTool"]),
  ]
  targets += [
    .target(name: "CLinux"),

    // Sockets and other descriptors on a queue: epoll(7).
    .target(name: "Readiness", dependencies: ["CLinux", "Locking"], swiftSettings: settings),
    .testTarget(
      name: "ReadinessTests", dependencies: ["Readiness", "Locking", "BlockingTests"], swiftSettings: settings
    ),

    // libdbus-1 as Swift, for any use of D-Bus.
    .systemLibrary(name: "CDBus", pkgConfig: "dbus-1", providers: [.apt(["libdbus-1-dev"])]),
    .target(name: "DBus", dependencies: ["CDBus", "Locking", "Readiness"], swiftSettings: settings),
    .testTarget(
      name: "DBusTests",
      dependencies: ["DBus", "CDBus", "Locking", "ChildProcess", "PrivateBus", "TestSupport"],
      swiftSettings: settings),

    // The seam between Core Bluetooth and whatever carries its bytes.
    .target(name: "Radio", dependencies: ["Locking"], swiftSettings: settings),
    .testTarget(name: "RadioTests", dependencies: ["Radio", "Locking"], swiftSettings: settings),

    // bluetoothd and the kernel's sockets as a radio.
    .systemLibrary(name: "CBluez", pkgConfig: "bluez", providers: [.apt(["libbluetooth-dev"])]),
    .target(
      name: "BlueZRadio",
      dependencies: ["Radio", "Readiness", "DBus", "Locking", "SystemCalls", "CBluez", "CLinux"],
      swiftSettings: settings),
    .testTarget(
      name: "BlueZRadioTests",
      dependencies: [
        "BlueZRadio", "Radio", "Readiness", "DBus", "Locking", "BlockingTests", "ChildProcess", "PrivateBus",
        "RealStack", "SystemCalls", "TestSupport",
      ],
      swiftSettings: settings),

    // A link in software.
    .target(
      name: "VirtualRadio",
      dependencies: ["Radio", "Readiness", "Locking", "SystemCalls", "Wording", "CLinux"],
      swiftSettings: settings),
    .testTarget(
      name: "VirtualRadioTests",
      dependencies: [
        "VirtualRadio", "Radio", "Readiness", "Locking", "BlockingTests", "ChildProcess", "TestSupport",
      ],
      swiftSettings: settings),

    // What every radio must do; each radio is one argument of the suite.
    .testTarget(
      name: "RadioContractTests",
      dependencies: [
        "Radio", "VirtualRadio", "BlueZRadio", "DBus", "Locking", "BlockingTests", "TestSupport",
      ],
      swiftSettings: settings),

    // Apple's API on a radio.
    .target(
      name: "CoreBluetooth", dependencies: ["Radio", "VirtualRadio", "BlueZRadio", "DBus", "Locking"],
      swiftSettings: settings),
    .testTarget(
      name: "CoreBluetoothTests",
      dependencies: ["CoreBluetooth", "Radio", "VirtualRadio", "Locking", "ChildProcess", "TestSupport"],
      exclude: ["Surface/symbols.txt"], swiftSettings: settings),

    // The tool: a library of commands, so that tests reach them, and the executable.
    .target(
      name: "BluehaulTool",
      dependencies: [
        "BulkTransfer", "CoreBluetooth", "Radio", "VirtualRadio", "BlueZRadio", "Locking", "Wording",
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "bluehaul", dependencies: ["BluehaulTool"], swiftSettings: settings),
    .executableTarget(
      name: "make-sample-image", dependencies: ["BluehaulTool", "BulkTransfer"],
      path: "samples/make-image", swiftSettings: settings),
    .testTarget(
      name: "BluehaulToolTests",
      dependencies: [
        "BluehaulTool", "BulkTransfer", "ChildProcess", "Radio", "VirtualRadio", "BlueZRadio", "DBus",
        "Locking", "TestSupport",
      ],
      swiftSettings: settings),

    // Runs built programs for tests.
    .target(
      name: "ChildProcess", dependencies: ["CLinux", "Locking"], path: "Tests/ChildProcess",
      swiftSettings: settings),

    // Threads for tests that block theirs.
    .target(
      name: "BlockingTests", dependencies: ["Locking"], path: "Tests/BlockingTests", swiftSettings: settings),

    // A bus for one test.
    .target(
      name: "PrivateBus", dependencies: ["ChildProcess", "DBus", "TestSupport"], path: "Tests/PrivateBus",
      swiftSettings: settings),

    // A kernel with Bluetooth, bluetoothd and controllers in software, in a virtual machine.
    .target(
      name: "RealStack", dependencies: ["ChildProcess", "CLinux", "Locking"], path: "Tests/RealStack",
      exclude: ["README.md"],
      resources: ["init.sh", "session.sh", "stack.sh", "main.conf"].map { .embedInCode("Scripts/\($0)") },
      swiftSettings: settings),
    .executableTarget(
      name: "real-stack", dependencies: ["RealStack"], path: "Tests/RealStackTool", swiftSettings: settings),
    .testTarget(
      name: "RealStackTests", dependencies: ["RealStack", "ChildProcess", "Locking"], swiftSettings: settings),
    .testTarget(
      name: "GuestTests",
      dependencies: [
        "RealStack", "CoreBluetooth", "BlueZRadio", "Radio", "DBus", "Locking", "ChildProcess",
      ], swiftSettings: settings),
    .testTarget(
      name: "SampleTests", dependencies: ["SampleData", "ChildProcess", "RealStack", "TestSupport"],
      swiftSettings: settings),

    // Peers made with other Bluetooth software.
    .testTarget(
      name: "ForeignPeerTests", dependencies: ["CoreBluetooth", "RealStack", "ChildProcess", "TestSupport"],
      exclude: ["Peers", "README.md"], swiftSettings: settings),

    // A program in the manner and the language mode of those that were written for Apple's framework before Swift 6.
    .executableTarget(
      name: "swift5-program", dependencies: ["CoreBluetooth"], path: "Tests/Swift5Program",
      swiftSettings: [.swiftLanguageMode(.v5)]),

    // The engine on Core Bluetooth on the simulated radio, whole.
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "BluehaulTool", "BulkTransfer", "CoreBluetooth", "Radio", "VirtualRadio", "Locking", "TestSupport",
      ],
      swiftSettings: settings),
  ]
#endif

// Where only what tests do in their own process counts, as for a sanitizer, nothing is built that runs other programs or the virtual machine.
if Context.environment["IN_PROCESS_TESTS_ONLY"] != nil {
  let others: Set = ["RealStackTests", "GuestTests", "SampleTests", "ForeignPeerTests"]
  targets.removeAll { others.contains($0.name) }
}

let package = Package(
  name: "bluehaul", platforms: [.macOS(.v15), .iOS(.v18)], products: products, targets: targets)
