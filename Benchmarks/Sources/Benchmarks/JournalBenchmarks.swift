internal import BulkTransfer
internal import CAllocations
internal import Foundation

extension Benchmark {
  /// What a push writes down about twice in four seconds: its record, durably.
  static let journal = [
    Benchmark(name: "journal") {
      let folder = FileManager.default.temporaryDirectory.appending(path: "bluehaul-journal-\(UUID())")
      defer { try? FileManager.default.removeItem(at: folder) }
      let count = 100
      var record = try sampleRecord()
      let claim = try TransferJournal(directory: folder.path).claim(record.transferID, device: record.device)
      try claim.save(record)
      let plain = AtomicFile(path: folder.appending(path: "plain.json").path)
      let contents = try Data(contentsOf: URL(filePath: claim.path))
      try plain.write(contents)
      var (saving, writing) = (Duration.seconds(3600), Duration.seconds(3600))
      var allocations = 0
      for number in 0..<count {
        record.updated = Date(timeIntervalSince1970: Double(number))
        let before = allocations_count()
        saving = min(saving, try ContinuousClock().measure { try claim.save(record) })
        if number > 0 { allocations += Int(allocations_count() - before) }
        writing = min(writing, try ContinuousClock().measure { try plain.write(contents) })
      }
      return [
        Measurement("journal record octets", Double(contents.count), "bytes"),
        Measurement("journal record allocations", Double(allocations) / Double(count - 1), "a record"),
        Measurement("journal record time", saving / writing, "times writing them durably"),
        Measurement("journal record duration", saving / .milliseconds(1), "ms"),
      ]
    }
  ]

  private static func sampleRecord() throws -> TransferRecord {
    let digest = try SHA256Hasher.digest(of: Data("an image".utf8))
    let image = TransferRecord.Object(
      name: "image.bin", path: "/var/lib/images/image.bin", format: .raw, fileSize: 1 << 20,
      fileModified: 1_700_000_000, size: 1 << 20, sha256: digest, confirmed: 65536)
    return try TransferRecord(
      device: .init(name: "device"), objects: [image], started: Date(timeIntervalSince1970: 0),
      link: ["radio": "bluez"])
  }
}
