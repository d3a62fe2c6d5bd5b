internal import Foundation

extension SimulatedFlash {
  /// The contents of the flash and what it is programmed to do wrong.
  struct Cells {
    /// A part with its bookkeeping.
    struct Slot {
      var size: UInt64
      var bytes = CellBytes()
      var durable: UInt64 = 0
      /// Sectors from the start that need no erasing before they are written.
      var erasedSectors: UInt64 = 0
      /// Who uses it; nil while nobody does.
      var lease: UInt64?

      mutating func forgetErased(after offset: UInt64, sectorSize: UInt64) {
        erasedSectors = min(erasedSectors, (offset + sectorSize - 1) / sectorSize)
      }

      /// Erases what lies before `end` and was not erased; returns how many sectors that took.
      mutating func erase(before end: UInt64, sectorSize: UInt64) -> UInt64 {
        let needed = (end + sectorSize - 1) / sectorSize
        guard needed > erasedSectors else { return 0 }
        defer { erasedSectors = needed }
        return needed - erasedSectors
      }
    }

    struct Finished {
      var sha256: SHA256Digest
      var bytes: CellBytes
    }

    var parts: [SHA256Digest: Slot] = [:]
    var finished: [String: Finished] = [:]
    var corruptions: [UInt64: Occurrence] = [:]
    var failures: [UInt64: Occurrence] = [:]
    private var leases: UInt64 = 0

    var finishedBytes: UInt64 { finished.values.reduce(0) { $0 + $1.bytes.count } }

    /// Nil if the object is there already.
    mutating func open(
      _ object: ReceivedObject, profile: Profile
    ) throws(TransferError) -> (lease: UInt64, busy: Duration)? {
      if let present = finished[object.name], present.sha256 == object.sha256,
        try SHA256Hasher.digest(of: present.bytes.data) == object.sha256
      {
        return nil
      }
      if parts[object.sha256]?.lease != nil {
        throw TransferError(
          .locked, "the object \(object.sha256.hex.prefix(16)) is being received over another connection",
          advice: "wait until that transfer has ended", isRetriable: true)
      }
      guard object.size <= profile.capacity else {
        throw TransferError(
          .objectTooLarge, "the object has \(object.size) bytes, the flash holds \(profile.capacity)",
          advice: "build a smaller image")
      }
      var slot = parts[object.sha256] ?? Slot(size: object.size)
      if slot.size != object.size { slot = Slot(size: object.size) }
      try makeRoom(for: object, capacity: profile.capacity)
      leases += 1
      slot.lease = leases
      var busy = Duration.zero
      if profile.erasesAtOpen {
        let sectors = slot.erase(before: object.size, sectorSize: UInt64(profile.sectorSize))
        busy = profile.eraseTime * Int(clamping: sectors)
      }
      parts[object.sha256] = slot
      return (leases, busy)
    }

    private mutating func makeRoom(for object: ReceivedObject, capacity: UInt64) throws(TransferError) {
      var used = finishedBytes
      for (hash, slot) in parts where hash != object.sha256 && slot.lease != nil { used += slot.size }
      guard used <= capacity, object.size <= capacity - used else {
        throw TransferError(
          .diskFull,
          "the flash has \(capacity > used ? capacity - used : 0) bytes left, the object needs \(object.size)",
          advice: "remove what is stored there")
      }
      parts = parts.filter { $0.key == object.sha256 || $0.value.lease != nil }
    }

    func slot(_ object: ReceivedObject, _ lease: UInt64) throws(TransferError) -> Slot {
      guard let slot = parts[object.sha256], slot.lease == lease else {
        throw TransferError(
          .storage, "the stored part \(object.sha256.hex.prefix(16)) is no longer open", isRetriable: true)
      }
      return slot
    }

    mutating func write(
      _ data: Data, at offset: UInt64, _ object: ReceivedObject, _ lease: UInt64, _ profile: Profile
    ) throws(TransferError) -> Duration {
      let durable = try slot(object, lease).durable
      let count = UInt64(data.count)
      guard offset >= durable, offset <= object.size, count <= object.size - offset else {
        throw .rangeOutside("write", "\(count) bytes at \(offset)", of: object)
      }
      let covered = offset..<(offset + count)
      for (place, occurrence) in failures where covered.contains(place) {
        if occurrence == .once { failures[place] = nil }
        throw TransferError(.storage, "flash write failed at offset \(place)", isRetriable: true)
      }
      var stored = data
      for (place, occurrence) in corruptions where covered.contains(place) {
        if occurrence == .once { corruptions[place] = nil }
        stored[stored.startIndex + Int(place - offset)] ^= 0xFF
      }
      // In place: a copy of the slot would copy its bytes with each write.
      parts[object.sha256]?.bytes.write(stored, at: offset)
      let sectorSize = UInt64(profile.sectorSize)
      let sectors = parts[object.sha256]?.erase(before: offset + count, sectorSize: sectorSize) ?? 0
      let programming = profile.writeRate.map { Duration.seconds(1) * Int(count) / $0 } ?? .zero
      return profile.eraseTime * Int(clamping: sectors) + programming
    }

    mutating func corrupt(_ sha256: SHA256Digest, at offset: UInt64) -> Bool {
      if parts[sha256]?.bytes.invert(at: offset) == true { return true }
      for (name, object) in finished where object.sha256 == sha256 {
        return finished[name]?.bytes.invert(at: offset) ?? false
      }
      return false
    }

    /// The partly programmed sector stays as it is; the erased ones after it are not remembered and are erased again.
    mutating func powerCut(sectorSize: UInt64) {
      parts = parts.mapValues { slot in
        var slot = slot
        slot.bytes.truncate(to: slot.durable)
        slot.lease = nil
        slot.forgetErased(after: slot.durable, sectorSize: sectorSize)
        return slot
      }
    }
  }

  /// Bytes of one object; what was never written reads as erased flash.
  struct CellBytes {
    private(set) var data = Data()

    var count: UInt64 { UInt64(data.count) }

    mutating func write(_ bytes: Data, at offset: UInt64) {
      let start = Int(offset)
      let end = start + bytes.count
      if data.count < end { data.append(Data(repeating: 0xFF, count: end - data.count)) }
      data.replaceSubrange(start..<end, with: bytes)
    }

    func read(at offset: UInt64, count: Int) -> Data {
      var bytes = data.dropFirst(Int(offset)).prefix(count)
      if bytes.count < count { bytes.append(Data(repeating: 0xFF, count: count - bytes.count)) }
      return Data(bytes)
    }

    mutating func invert(at offset: UInt64) -> Bool {
      guard offset < count else { return false }
      data[Int(offset)] ^= 0xFF
      return true
    }

    mutating func truncate(to size: UInt64) {
      data = Data(data.prefix(Int(clamping: size)))
    }
  }
}
