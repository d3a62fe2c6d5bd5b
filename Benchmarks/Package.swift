// swift-tools-version: 6.2
import PackageDescription

/// What the package itself is built with, too.
let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),  // SE-0458
  .treatAllWarnings(as: .error),  // SE-0443
  .enableUpcomingFeature("ExistentialAny"),  // SE-0335
  .enableUpcomingFeature("InternalImportsByDefault"),  // SE-0409
  .enableUpcomingFeature("MemberImportVisibility"),  // SE-0444
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),  // SE-0461
]

let package = Package(
  name: "benchmarks",
  dependencies: [.package(name: "bluehaul", path: "..")],
  targets: [
    // Counts what is allocated, in place of malloc(3).
    .target(name: "CAllocations"),
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "CAllocations", .product(name: "BluehaulTool", package: "bluehaul"),
        .product(name: "BulkTransfer", package: "bluehaul"),
        .product(name: "CoreBluetooth", package: "bluehaul"),
        .product(name: "Radio", package: "bluehaul"),
        .product(name: "VirtualRadio", package: "bluehaul"),
      ],
      swiftSettings: settings),
  ])
