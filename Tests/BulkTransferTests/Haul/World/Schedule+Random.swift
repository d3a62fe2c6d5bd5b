import BulkTransfer
import Foundation

extension Schedule {
  /// The schedule of a seed: a link, a receiver and a plan of misfortunes.
  ///
  /// Most schedules heal: their faults end after a while and the sender tries as often as it takes, so the run has to end verified. The others
  /// have a fault that stays, a user who gives up or a sender that tries only a few times, and have to end either way.
  init(randomSeed seed: UInt64) {
    var random = SeededGenerator(seed)
    self.init()
    self.seed = seed
    carrier = random.chance(0.35) ? .l2cap : .gatt
    chooseLink(&random)
    chooseObjects(&random)
    chooseEnds(&random)
    let expected = objects.reduce(0) { $0 + $1.count } * 1_000_000 / bytesPerSecond + 500_000
    chooseFaults(&random, expected: expected)
    chooseIncidents(&random, expected: expected)
    timeLimit = nil
  }

  private mutating func chooseObjects(_ random: inout SeededGenerator) {
    let count = random.chance(0.15) ? random.pick(2...3) : 1
    objects = (0..<count).map { _ in
      // Small packets make many: their images are smaller.
      let largest = min(60_000, max(12_000, limit * 150)) / count
      let size = random.chance(0.3) ? random.pick(1...4000) : random.pick(4000...largest)
      return random.bytes(size)
    }
    if count > 1, random.chance(0.2) { objects[1] = objects[0] }
    if random.chance(0.5) { checksumSegment = [512, 4096, 5000, 65536][random.pick(0...3)] }
  }

  private mutating func chooseLink(_ random: inout SeededGenerator) {
    limit = [20, 20, 61, 182, 244, 244, 495, 512][random.pick(0...7)]
    if carrier == .l2cap { limit = [64, 245, 1000, 4096, 16384][random.pick(0...4)] }
    bytesPerSecond = [4_000, 12_000, 60_000, 150_000, 400_000][random.pick(0...4)]
    latency = random.pick(500...60_000)
    let fast = random.pick(200...30_000)
    controlLatency = fast...(fast + random.pick(0...120_000))
    hostDepth = random.chance(0.2) ? 10_000 : random.pick(1...30)
  }

  private mutating func chooseEnds(_ random: inout SeededGenerator) {
    let interval = [256, 1024, 4096, 4096, 8192][random.pick(0...4)]
    configuration = HaulConfiguration(
      segmentPower: UInt8(random.pick(12...15)), receiptInterval: interval,
      initialWindow: random.pick(1...40_000), minimumWindow: random.pick(1...8192),
      maximumWindow: max(2 * interval, random.pick(8192...100_000)),
      packetLimit: random.chance(0.1) ? random.pick(20...300) : nil)
    receiver = ReceiverConfiguration(
      device: Array(1...16), buffer: random.chance(0.3) ? 4096 : random.pick(4096...70_000),
      largestSegmentPower: UInt8(random.pick(12...16)),
      syncBytes: UInt64(random.pick(1...40_000)), syncInterval: .milliseconds(random.pick(20...2000)),
      readBackStep: random.pick(1000...100_000))
    flash = SimulatedFlash.Profile(
      capacity: 1 << 20, sectorSize: [512, 4096][random.pick(0...1)],
      eraseTime: random.chance(0.5) ? .zero : .milliseconds(random.pick(1...300)),
      writeRate: random.chance(0.5) ? nil : random.pick(8_000...200_000),
      syncTime: random.chance(0.5) ? .zero : .milliseconds(random.pick(1...400)),
      erasesAtOpen: random.chance(0.4))
  }

  private mutating func chooseFaults(_ random: inout SeededGenerator, expected: Int) {
    mustSucceed = true
    attempts = .max
    faultsEnd = expected * 3 + 5_000_000
    reconnectDelay = random.pick(1000...3_000_000)
    restarts = random.chance(0.05)
    guard random.chance(0.7) else { return }
    func rate(_ highest: Double) -> Double {
      random.chance(0.5)
        ? 0 : pow(random.chance(0.5) ? 0.1 : 1, 2) * Double(random.pick(0...1000)) / 1000 * highest
    }
    faults = Faults(
      dataLoss: rate(0.05), dataDoubling: rate(0.02), dataDamage: rate(0.02), controlLoss: rate(0.3),
      controlDoubling: rate(0.2))
  }

  private mutating func chooseIncidents(_ random: inout SeededGenerator, expected: Int) {
    for _ in 0..<random.pick(0...5) {
      let at = random.pick(0...expected * 2)
      switch random.pick(0...16) {
      case 0, 1, 2: incidents.append((at, .cut))
      case 3: incidents.append((at, .senderCrash))
      case 4: incidents.append((at, .powerCut))
      case 5: incidents.append((at, .hostStall(random.pick(1000...9_000_000))))
      case 6: incidents.append((at, .stuck(random.pick(1000...15_000_000))))
      case 7: incidents.append((at, .deaf(random.pick(1000...2_000_000))))
      case 8:
        incidents.append((at, .pause))
        incidents.append((at + random.pick(1000...90_000_000), .resume))
      case 9, 10: incidents.append((at, .limit([20, 61, 182, 244, 512][random.pick(0...4)])))
      case 11: incidents.append((at, .flood(random.pick(1...100_000))))
      case 12:
        incidents.append(
          (at, .weaken(random.pick(100_000...10_000_000), silence: random.pick(100_000...6_000_000))))
      case 13: incidents.append((at, .restart))
      case 14: incidents.append((at, carrier == .l2cap ? .starve(random.pick(1000...15_000_000)) : .cut))
      case 15:
        incidents.append(
          (at, carrier == .l2cap ? .garble(random.pick(1...2000)) : .fade(random.pick(100_000...6_000_000))))
      default: chooseLastingFault(&random, at: at)
      }
    }
  }

  /// Something that the transfer may not survive.
  private mutating func chooseLastingFault(_ random: inout SeededGenerator, at: Int) {
    mustSucceed = false
    attempts = random.pick(1...6)
    let place = UInt64(random.pick(0...objects[0].count - 1))
    switch random.pick(0...5) {
    case 0: incidents.append((at, .cancel))
    case 1: incidents.append((at, .corruptStored(place)))
    case 2: incidents.append((at, .stuck(100_000_000_000)))
    case 3: prepareFlash = { $0.failWrites(at: place, .always) }
    case 4:
      let occurrence: SimulatedFlash.Occurrence = random.chance(0.5) ? .once : .always
      prepareFlash = { $0.corruptWrites(at: place, occurrence) }
    default:
      var contents = objects
      contents[0][Int(place)] ^= 0x40
      changedObjects = (at, contents)
    }
  }
}

extension Schedule {
  /// The schedule of a seed with objects that can be coded, against a base or not, at a receiver that may or may not be made for it.
  init(codedSeed seed: UInt64) {
    self.init(randomSeed: seed)
    var random = SeededGenerator(seed ^ 0xC0DED)
    let places = changedObjects.map { changed in
      zip(changed.contents[0], objects[0]).enumerated().first { $1.0 != $1.1 }?.offset ?? 0
    }
    objects = objects.map { $0.count < 64 ? $0 : mixture($0.count, &random) }
    if let place = places {
      changedObjects?.contents = objects
      changedObjects?.contents[0][place] ^= 0x40
    }
    var coding = Coding(compresses: random.chance(0.7))
    if random.chance(0.6) {
      coding.base = random.chance(0.15) ? random.bytes(5000) : edited(objects[0], &random)
      coding.isBaseHeld = random.chance(0.8)
      receiver.basePower = random.chance(0.1) ? nil : UInt8(random.pick(10...18))
    }
    self.coding = coding
    if random.chance(0.4) { faults.dataLoss = max(faults.dataLoss, Double(random.pick(1...30)) / 1000) }
    receiver.decodes = random.chance(0.9)
    configuration.codedSegmentPower = random.chance(0.5) ? UInt8(random.pick(12...16)) : nil
  }
}

/// Octets of which a part repeats, as in firmware.
func mixture(_ count: Int, _ random: inout SeededGenerator) -> Data {
  var bytes = Data()
  while bytes.count < count {
    switch random.pick(0...3) {
    case 0: bytes.append(random.bytes(random.pick(1...3000)))
    case 1: bytes.append(Data(repeating: UInt8(random.pick(0...255)), count: random.pick(1...5000)))
    default:
      let word = random.bytes(random.pick(2...40))
      for _ in 0..<random.pick(1...60) { bytes.append(word + random.bytes(random.pick(0...3))) }
    }
  }
  return Data(bytes.prefix(count))
}

/// An older version: some octets changed, some inserted, some left out.
func edited(_ contents: Data, _ random: inout SeededGenerator) -> Data {
  var bytes = contents
  for _ in 0..<random.pick(1...12) {
    let place = random.pick(0...bytes.count - 1)
    switch random.pick(0...2) {
    case 0: bytes[place] ^= 0x11
    case 1: bytes.insert(contentsOf: random.bytes(random.pick(1...200)), at: place)
    default:
      let end = min(bytes.count, place + random.pick(1...200))
      if end - place < bytes.count { bytes.removeSubrange(place..<end) }
    }
  }
  return bytes
}
