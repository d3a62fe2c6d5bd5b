import BulkTransfer
import Foundation
import Testing

@testable import BluehaulTool

@Suite struct SampleImageTests {
  @Test(arguments: [4096, 200_000, SampleImage.defaultSize, 1_000_001])
  func hasTheSizeThatWasAsked(size: Int) throws {
    let data = try SampleImage.data(size: size)
    #expect(data.count == size)
    #expect(data.prefix(4) == Data([0x3D, 0xB8, 0xF3, 0x96]))
    let hash = try SHA256Hasher.digest(of: data.dropLast(40))
    #expect(data.suffix(32) == hash.data, "the trailer is the hash of what stands before it")
  }

  @Test func isTheSameEachTime() throws {
    #expect(try SampleImage.data() == SampleImage.data())
    #expect(try SampleImage.data(seed: 1) != SampleImage.data(seed: 2))
  }

  @Test func doesNotCompressToNothing() throws {
    // Entropy of single bytes bounds what a compressor without a model of repetition gains.
    let data = try SampleImage.data()
    var counts = Array(repeating: 0, count: 256)
    for byte in data { counts[Int(byte)] += 1 }
    let entropy = counts.filter { $0 > 0 }.reduce(0.0) { sum, count in
      let share = Double(count) / Double(data.count)
      return sum - share * log2(share)
    }
    #expect(entropy > 5)
    // And blocks do not repeat.
    let blocks = stride(from: 0, to: data.count - 64, by: 64).map { data[$0..<($0 + 64)] }
    #expect(Set(blocks).count > blocks.count * 95 / 100)
  }
}
