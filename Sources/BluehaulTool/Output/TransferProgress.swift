/// Where a transfer stands, as the printers show it: what the receiver has confirmed, never what was queued.
struct TransferProgress: Hashable, Sendable {
  /// What the transfer is doing.
  enum Phase: String, Hashable, Sendable {
    case connect, prepare, transfer, verify, done
  }

  var phase: Phase
  /// The name of the file that is being moved.
  var object: String
  /// Counts from 1.
  var objectIndex = 1
  var objectCount = 1
  /// Bytes of all objects together.
  var totalBytes: Int
  /// Bytes of all objects that are durable at the receiver.
  var confirmedBytes: Int
  /// What was confirmed before this run began.
  var resumedFrom = 0
  /// Bytes of the data stream that this run has handed over: fewer than those of the objects where they travel coded.
  var streamBytes: Int?
  /// Over a window of the last seconds in which data moved.
  var bytesPerSecond: Double?
  /// Bytes of this run over the time in which data moved.
  var averageBytesPerSecond: Double?
  var timeRemaining: Duration?
  /// Average over what the link could carry at best.
  var ceilingRatio: Double?
  /// Time spent in each phase that has ended or is running, on the clock of the link.
  var phaseTimes: [Phase: Duration] = [:]
}
