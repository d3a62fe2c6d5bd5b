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
  /// A run that is not over by then is a failure of its own.
  var timeLimit = 4 * 3_600_000_000
  /// Whether the run has to end verified.
  var mustSucceed = false
}
