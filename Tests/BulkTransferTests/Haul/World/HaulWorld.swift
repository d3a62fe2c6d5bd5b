import Foundation

@testable import BulkTransfer

/// A sender, a receiver with its flash, and a link between them, in virtual time.
///
/// The shells here do what real ones do: they pull data while the host is ready, cut control messages to the limit of the moment, carry
/// out storage requests one after another, connect again after a failure. What must never happen is checked at each step and collected in
/// ``violations``.
final class HaulWorld {
  enum Event {
    /// A packet of the data characteristic, or octets of the channel, for the receiver.
    case data(link: Int, Data)
    case controlToReceiver(link: Int, Data)
    case controlToSender(link: Int, Data)
    case channelToSender(link: Int, Data)
    /// The host has handed a packet to the air.
    case departed(link: Int)
    case storage(life: Int, StorageReport)
    case senderTimer(session: Int)
    case receiverTimer(life: Int)
    case hostReady
    case incident(Schedule.Incident)
    case connect
    case lossNoticed(link: Int)
  }

  /// How a run has ended.
  enum Outcome: Equatable {
    case verified
    case failed(TransferError)
    case overdue
  }

  let schedule: Schedule
  let outgoing: [OutgoingObject]
  let flash: SimulatedFlash
  let encoder = SegmentEncoder()
  let base: (any ByteSource)?
  var random: SeededGenerator
  var events = EventQueue<Event>()
  /// In microseconds.
  var now = 0
  var outcome: Outcome?
  var violations: [String] = []

  // The link.
  var link = 0
  var isConnected = false
  var limit: Int
  var airFree = 0
  /// The connection event that is being filled, and how many packets it has.
  var airEvent = (number: 0, packets: 0)
  var hostCount = 0
  var hostStallEnd = 0
  /// Since when the link is becoming weaker, and when it is gone.
  var weakening: (start: Int, end: Int)?
  /// Octets without sense are on their way.
  var isGarbled = false
  var lastControlToReceiver = 0
  var lastControlToSender = 0

  // The sender.
  var sender: SenderSession?
  var senderNumber = 0
  var senderTimerAt = Int.max
  var toReceiver = ControlFragmenter()
  var fromReceiver = ControlAssembler()
  var channelFromReceiver = RecordDecoder()
  var meter: ProgressMeter?
  var coding: CodingStanding?
  var verifiedObjects = 0
  /// Whether the sender has what is stored discarded, and how many objects, from the first, it has had accepted since.
  var restarts: Bool
  var acceptedObjects = 0
  var attempts = 0
  var lastError: TransferError?
  var told = ToldEdge()
  var lastProgress: ProgressState?
  /// The farthest offset that was called durable, for each object.
  var durable: [Int: UInt64] = [:]
  /// Objects that the receiver has thrown away since their last ACCEPT.
  var discarded: Set<Int> = []

  // The receiver.
  var receiver: ReceiverSession
  var worker: StorageWorker
  var life = 0
  var storageQueue: [StorageRequest] = []
  var isStorageBusy = false
  var receiverTimerAt = Int.max
  var toSender = ControlFragmenter()
  var fromSender = ControlAssembler()
  var channelFromSender = RecordDecoder()
  var stuckUntil = 0
  var deafUntil = 0

  // What is counted.
  var counts = Counts()
  var trace: [String]?

  struct Counts {
    var dataPackets: [Int] = []
    var dataOctets = 0
    var controlOctets = 0
    var firstData: Int?
    var lastConfirmed = 0
    var losses = 0
    var syncs = 0
    var peakBuffer = 0
    var resumedFrom: [UInt64] = []
    var progress: [ProgressState] = []
    var offers: [HaulRequest.Offer] = []
    var accepts: [HaulReply.Accept] = []
    var streamOctetsAtAccept: [Int] = []
    var events: [ReceiverSession.Event] = []
  }

  /// What the receiver has told the sender about its right edge, as it arrived.
  struct ToldEdge {
    var epoch: Epoch?
    var edge: UInt64 = 0
  }

  /// - Parameter flash: that of a world before; nil: a new one.
  init(_ schedule: Schedule, flash former: SimulatedFlash? = nil) throws {
    self.schedule = schedule
    random = SeededGenerator(schedule.seed ^ 0x5EED)
    limit = schedule.limit
    restarts = schedule.restarts
    flash = former ?? SimulatedFlash(profile: schedule.flash)
    schedule.prepareFlash(flash)
    worker = StorageWorker(flash)
    let base = schedule.coding?.base
    self.base = base.map { MemorySource($0) }
    if let base, schedule.coding?.isBaseHeld == true { try flash.install(base, as: Self.baseName) }
    let coding = try schedule.coding.map { coding in
      ObjectCoding(
        compresses: coding.compresses,
        base: try base.map { try BaseImage(of: MemorySource($0), challenge: Array(1...8)) })
    }
    outgoing = try schedule.objects.enumerated().map { index, contents in
      var checksums: SegmentChecksums?
      if let size = schedule.checksumSegment {
        let starts = stride(from: 0, to: contents.count, by: size)
        checksums = try SegmentChecksums(
          segmentSize: size,
          values: starts.map { CRC32C.checksum(of: contents.dropFirst($0).prefix(size)) })
      }
      return OutgoingObject(
        name: "image-\(index).bin", size: UInt64(contents.count),
        sha256: try SHA256Hasher.digest(of: contents),
        checksums: checksums, coding: coding)
    }
    receiver = ReceiverSession(configuration: schedule.receiver, limits: try flash.limits(), now: .zero)
    for (at, what) in schedule.incidents { events.add(.incident(what), at: at) }
    events.add(.connect, at: 0)
  }

  /// The name under which a base is stored.
  static let baseName = "base.bin"

  /// Octets of the data stream that were handed over, check values included and SYNC not.
  var streamOctets: Int { counts.dataPackets.reduce(0, +) }

  var time: Duration { .microseconds(now) }

  /// Runs until the transfer has ended.
  @discardableResult
  func run() -> Outcome {
    let timeLimit = schedule.timeLimit ?? schedule.bound
    while outcome == nil {
      guard let (time, event) = events.take(), time <= timeLimit else {
        outcome = .overdue
        break
      }
      now = time
      handle(event)
    }
    checkStored()
    return outcome ?? .overdue
  }

  /// Runs on after the end, so that the receiver finishes what it has in hand.
  func settle(for microseconds: Int) {
    let end = now + microseconds
    while let time = events.nextTime, time <= end, let (_, event) = events.take() {
      now = time
      handle(event)
    }
    checkStored()
  }

  func note(_ text: @autoclosure () -> String) {
    guard trace != nil else { return }
    trace?.append("\(Double(now) / 1000) ms  \(text())")
  }

  func violate(_ text: String) {
    if violations.count < 5 { violations.append("at \(now) us: \(text)") }
  }

  private func handle(_ event: Event) {
    switch event {
    case .data(let link, let bytes):
      if link == self.link { arrive(bytes) }
    case .controlToReceiver(let link, let fragment):
      if link == self.link { controlArrives(fragment) }
    case .controlToSender(let link, let fragment):
      if link == self.link { senderHears(fragment) }
    case .channelToSender(let link, let bytes):
      if link == self.link { senderHearsChannel(bytes) }
    case .departed(let link):
      guard link == self.link else { return }
      hostCount -= 1
      if hostCount == schedule.hostDepth - 1 { pumpSender() }
    case .storage(let life, let report):
      if life == self.life { storageAnswers(report) }
    case .senderTimer(let number):
      guard number == senderNumber else { return }
      senderTimerAt = Int.max
      tell(.deadline)
    case .receiverTimer(let life):
      guard life == self.life else { return }
      receiverTimerAt = Int.max
      tellReceiver(.deadline)
    case .hostReady:
      pumpSender()
    case .incident(let incident):
      note("incident \(incident)")
      happen(incident)
    case .connect:
      connect()
    case .lossNoticed(let link):
      guard link == self.link else { return }
      tell(.carrierLost(TransferError(.disconnected, "the link was lost", isRetriable: true)))
    }
  }

  var hasFaults: Bool { now < schedule.faultsEnd }

  private func happen(_ incident: Schedule.Incident) {
    guard hasFaults || incident == .resume else { return }
    switch incident {
    case .cut: cut()
    case .fade(let silence):
      dropLink()
      events.add(.lossNoticed(link: link), at: now + silence)
    case .weaken(let length, let silence):
      guard isConnected else { return }
      weakening = (now, now + length)
      events.add(.incident(.fade(silence)), at: now + length)
    case .starve(let length): airFree = max(airFree, now + length)
    case .garble(let count):
      guard isConnected else { return }
      isGarbled = true
      arriveAfterAir(Data(repeating: 0xFF, count: count))
    case .restart:
      restarts = true
      crashSender()
    case .senderCrash: crashSender()
    case .powerCut:
      life += 1
      flash.powerCut()
      storageQueue = []
      isStorageBusy = false
      worker = StorageWorker(flash)
      receiverTimerAt = Int.max
      if let limits = try? flash.limits() {
        receiver = ReceiverSession(configuration: schedule.receiver, limits: limits, now: time)
      }
      cut()
    case .hostStall(let length):
      hostStallEnd = max(hostStallEnd, now + length)
      events.add(.hostReady, at: hostStallEnd)
    case .stuck(let length): stuckUntil = max(stuckUntil, now + length)
    case .deaf(let length): deafUntil = max(deafUntil, now + length)
    case .pause: tell(.pause)
    case .resume: tell(.resume)
    case .cancel: tell(.cancel(TransferError(.cancelled, "the user has cancelled", isRetriable: false)))
    case .limit(let octets):
      if schedule.carrier == .gatt { limit = octets }
    case .corruptStored(let offset):
      // What is final, or has been read back, is no longer the transfer's concern.
      guard let durable = flash.durableOffset(of: outgoing[0].sha256), offset < durable,
        durable < outgoing[0].size
      else { return }
      flash.corrupt(outgoing[0].sha256, at: offset)
    case .flood(let octets):
      guard isConnected else { return }
      let noise = random.bytes(octets)
      if schedule.carrier == .gatt { return arriveAfterAir(noise) }
      arriveAfterAir(RecordEncoder.encode(Record(kind: .stream, body: noise)))
    }
  }

  /// The process is gone: no session hears of anything, and nobody remembers what was verified or accepted.
  private func crashSender() {
    acceptedObjects = 0
    verifiedObjects = 0
    meter = nil
    coding = nil
    guard sender != nil else { return }
    sender = nil
    senderNumber += 1
    dropLink()
    events.add(.connect, at: now + schedule.reconnectDelay)
  }

  /// What is under a final name has to be the object, always.
  func checkStored() {
    let names = flash.names.filter { $0 != Self.baseName }
    for name in names {
      guard let index = outgoing.firstIndex(where: { $0.name == name }) else {
        violate("there is a file \(name)")
        continue
      }
      if flash.contents(of: name) != schedule.objects[index] { violate("\(name) has other bytes") }
    }
    if outcome == .verified, names.count != outgoing.count {
      violate("finished with \(names) of \(outgoing.count) objects")
    }
  }
}
