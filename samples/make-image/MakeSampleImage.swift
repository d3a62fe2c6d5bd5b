import BluehaulTool
import BulkTransfer
import Foundation

/// Writes the firmware image that demonstrations push: a valid MCUboot image, the same on every machine for the same size and seed.
@main
struct MakeSampleImage {
  static let usage = """
    usage: make-sample-image [--size BYTES] [--seed NUMBER] [--output FILE]

      --size BYTES    size of the image, 4096 to 67108864 (default \(SampleImage.defaultSize))
      --seed NUMBER   another number gives another image (default \(SampleImage.defaultSeed))
      --output FILE   where it goes (default samples/\(SampleImage.fileName))

    """

  static func main() {
    do {
      try run(Array(CommandLine.arguments.dropFirst()))
    } catch {
      try? FileHandle.standardError.write(contentsOf: Data("make-sample-image: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func run(_ arguments: [String]) throws(TransferError) {
    if arguments == ["--help"] {
      try? FileHandle.standardOutput.write(contentsOf: Data(usage.utf8))
      return
    }
    var (size, seed) = (SampleImage.defaultSize, SampleImage.defaultSeed)
    var output = "samples/\(SampleImage.fileName)"
    var rest = arguments[...]
    while let option = rest.popFirst() {
      guard ["--size", "--seed", "--output"].contains(option), let value = rest.popFirst() else {
        throw TransferError(
          .invalidArgument, "\(option) is no option, or lacks its value", advice: "see --help")
      }
      switch option {
      case "--size": size = try number(value, option, 4096...1 << 26)
      case "--seed": seed = try number(value, option, 0...UInt64.max)
      default: output = value
      }
    }
    let image = try SampleImage.data(size: size, seed: seed)
    try AtomicFile(path: output).write(image)
    print("\(output): \(image.count) bytes, SHA-256 \(try SHA256Hasher.digest(of: image))")
  }

  private static func number<Number: FixedWidthInteger>(
    _ text: String, _ option: String, _ allowed: ClosedRange<Number>
  ) throws(TransferError) -> Number {
    guard let number = Number(text), allowed.contains(number) else {
      throw TransferError(
        .invalidArgument,
        "\(option) \(text) is not a number from \(allowed.lowerBound) to \(allowed.upperBound)")
    }
    return number
  }
}
