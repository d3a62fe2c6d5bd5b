import BulkTransfer
import Foundation

/// Everything that decides a run of ``HaulWorld``. Times are in microseconds.
struct Schedule {
  /// What happens once, at its time.
  enum Incident: Hashable {
    /// The link breaks; the sender connects again later.
    case cut
    /// The link breaks, and the sender is told after so long: the supervision timeout.
    case fade(Int)
    /// The sender goes out of reach: for so long packets are repeated ever more often, then the link breaks as in `fade`.
    case weaken(Int, silence: Int)
    /// The user ends the sender and starts it again, to begin at 0.
    case restart
    /// The receiver gives no credits for the channel for so long: neither data nor requests get through.
    case starve(Int)
    /// Octets on the channel that make no sense: the receiver closes it.
    case garble(Int)
    /// The sender's process dies and is started again, without any memory.
    case senderCrash
    /// The receiver loses power.
    case powerCut
    /// The host takes no data for so long.
    case hostStall(Int)
    /// The receiver hears nothing for so long; what comes for it waits.
    case stuck(Int)
    /// The receiver drops data for so long, as small devices do while they erase.
    case deaf(Int)
    case pause
    case resume
    case cancel
    /// Octets per packet from now on (ATT MTU - 3).
    case limit(Int)
    /// A stored octet of the first object is inverted.
    case corruptStored(UInt64)
    /// The sender sends data that nobody asked for.
    case flood(Int)
  }

  /// What the link does to each packet, until ``faultsEnd``.
  struct Faults: Hashable {
    var dataLoss = 0.0
    var dataDoubling = 0.0
    var dataDamage = 0.0
    var controlLoss = 0.0
    var controlDoubling = 0.0
  }

  /// How objects may be coded, all of them alike.
  struct Coding {
    var compresses = true
    /// An older image that the sender has.
    var base: Data?
    /// Whether the receiver has it too.
    var isBaseHeld = true
    /// What codes in place of a real encoder.
    var encode: SegmentEncoding?
  }

  var seed: UInt64 = 0
  var carrier = CarrierKind.gatt
  var objects: [Data] = []
  var configuration = HaulConfiguration()
  var receiver = ReceiverConfiguration(device: Array(1...16))
  var flash = SimulatedFlash.Profile()
  var prepareFlash: @Sendable (SimulatedFlash) -> Void = { _ in }
  /// How objects may be coded; nil: not.
  var coding: Coding?
  /// Whether the sender knows checksums of the segments, and of which size they are.
  var checksumSegment: Int?
  /// What is read instead of the objects, from this time on.
  var changedObjects: (at: Int, contents: [Data])?

  /// Octets per packet at first (ATT MTU - 3).
  var limit = 244
  var bytesPerSecond = 100_000
  /// From the end of a packet until it arrives.
  var latency = 10_000
  /// The same for control messages: drawn for each, though they never overtake each other.
  var controlLatency = 5_000...40_000
  /// Packets that the host takes before it says that it is not ready.
  var hostDepth = 20
  /// Where the link works in connection events: their distance, and the packets of 244 octets that each carries in either direction.
  var connectionEvents: (interval: Int, packets: Int)?
  /// Numbers of data packets that are lost, counted from 0 over all sessions.
  var lostPackets: Set<Int> = []
  var faults = Faults()
  var faultsEnd = Int.max
  var incidents: [(at: Int, what: Incident)] = []
  /// Sessions that the sender tries.
  var attempts = 1
  var reconnectDelay = 500_000
  /// A run that is not over by then is a failure of its own; nil: ``bound``.
  var timeLimit: Int? = 4 * 3_600_000_000
  /// Whether the run has to end verified.
  var mustSucceed = false
  /// Whether the sender tells the receiver to forget what it holds.
  var restarts = false
}

// MARK: How long a run may take

extension Schedule {
  /// The time by which a run has to be over, by what the schedule contains: until its last misfortune has passed everything may be in vain;
  /// then what is under way is given up, and all of it is sent once more, at the worst one window an exchange.
  ///
  /// A fault that stays costs that at each attempt.
  var bound: Int {
    let tries = attempts == .max ? 1 : attempts
    return calm + (giveUp + 2 * wholeTransfer) * tries + 2_000_000
  }

  /// When the last misfortune that passes has passed.
  private var calm: Int {
    incidents.reduce(faultsEnd == .max ? 0 : faultsEnd) { max($0, $1.at + $1.what.duration) }
  }

  /// The longest time until a session that gets no answer is at its end and the next one begins.
  private var giveUp: Int {
    let patience = configuration.idleLimit.microseconds
    // What was promised by BUSY is waited for: that is at most twice what the medium takes, or what a busy receiver says of itself.
    let busy = min(120_000_000, 2 * mediumTime + 4 * receiver.busyInterval.microseconds)
    return patience + busy + configuration.farewellLimit.microseconds + reconnectDelay
  }

  /// One transfer of everything over a link without faults.
  private var wholeTransfer: Int {
    let octets = objects.reduce(0) { $0 + $1.count }
    let slowest = incidents.reduce(limit) {
      if case .limit(let other) = $1.what { min($0, other) } else { $0 }
    }
    let exchange = 2 * latency + 2 * controlLatency.upperBound
    let window = min(receiver.buffer, 2 * configuration.receiptInterval, 4096)
    // Requests are cut into fragments, of which each is on its way by itself.
    let requests =
      objects.count * 4 * (1 + 600 / (carrier == .gatt ? slowest : 600)) * controlLatency.upperBound
    let air = (octets + octets / 256 + 4096) * 1_000_000 / bytesPerSecond
    return air + (octets / window + 1) * exchange + requests + mediumTime
  }

  /// Erasing, writing and syncing all objects, a sync for each segment.
  private var mediumTime: Int {
    objects.reduce(0) { time, object in
      let sectors = object.count / flash.sectorSize + 1
      let written = flash.writeRate.map { object.count * 1_000_000 / $0 } ?? 0
      return time + sectors * flash.eraseTime.microseconds + written
        + (object.count / 4096 + 2) * flash.syncTime.microseconds
    }
  }
}

extension Schedule.Incident {
  /// How long it lasts; what lasts for good is no matter of time.
  var duration: Int {
    switch self {
    case .fade(let time), .hostStall(let time), .starve(let time), .deaf(let time): time
    case .stuck(let time): time > 3_600_000_000 ? 0 : time
    case .weaken(let time, let silence): time + silence
    case .cut, .senderCrash, .powerCut, .pause, .resume, .cancel, .limit, .corruptStored, .flood, .restart,
      .garble:
      0
    }
  }
}

extension SegmentEncoder {
  /// Codes a segment against a part of a base, if there is one.
  func encode(
    _ segment: Data, against base: (any ByteSource)?, _ range: Range<UInt64>?
  ) throws(TransferError) -> Data? {
    guard let base, let range else { return try encode(segment) }
    return try encode(segment, base: (base, range))
  }
}
