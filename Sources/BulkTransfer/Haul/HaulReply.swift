/// A control message from the receiver to the sender.
public enum HaulReply: Hashable, Sendable {
  case welcome(Welcome)
  case accept(Accept)
  case receipt(Receipt)
  case lost(Lost)
  case verified(Verified)
  case refused(Refusal)
  case failed(Failure)
  case busy(request: UInt8, seconds: UInt16)

  /// Answers HELLO.
  public struct Welcome: Hashable, Sendable {
    public var request: UInt8
    public var version: UInt8
    public var features: UInt16
    /// Sixteen octets that name the device.
    public var device: [UInt8]
    /// Octets of the stream that the receiver can hold.
    public var buffer: UInt32
    /// The largest segment as a power of two.
    public var largestSegmentPower: UInt8
    /// In octets, below 2^48.
    public var largestObject: UInt64
    /// In octets, below 2^48.
    public var freeSpace: UInt64
    public var extensions: [HaulExtension]

    public init(
      request: UInt8, version: UInt8, features: UInt16, device: [UInt8], buffer: UInt32,
      largestSegmentPower: UInt8, largestObject: UInt64, freeSpace: UInt64, extensions: [HaulExtension] = []
    ) {
      self.request = request
      self.version = version
      self.features = features
      self.device = device
      self.buffer = buffer
      self.largestSegmentPower = largestSegmentPower
      self.largestObject = largestObject
      self.freeSpace = freeSpace
      self.extensions = extensions
    }
  }

  /// Answers OFFER.
  public struct Accept: Hashable, Sendable {
    /// What the receiver holds of the object.
    public enum Standing: UInt8, Hashable, Sendable {
      case fresh = 0
      case resumed = 1
      case complete = 2
    }

    public var request: UInt8
    public var standing: Standing
    public var epoch: Epoch
    public var durable: UInt64
    /// In units of 256 octets.
    public var room: UInt16
    /// Whether the stream is coded; nil where nothing is said of it, and it is not.
    public var coding: Coding?

    public init(
      request: UInt8, standing: Standing, epoch: Epoch, durable: UInt64, room: UInt16, coding: Coding? = nil
    ) {
      self.request = request
      self.standing = standing
      self.epoch = epoch
      self.durable = durable
      self.room = room
      self.coding = coding
    }
  }

  /// Says how far the receiver is.
  public struct Receipt: Hashable, Sendable {
    /// What the receiver does.
    public enum State: UInt8, Hashable, Sendable {
      case idle = 0
      case streaming = 1
      case waitingForSync = 2
      case verifying = 3
      case complete = 4
      case failed = 5
    }

    /// The number of the request that it answers, or 0.
    public var request: UInt8
    public var epoch: Epoch
    public var state: State
    /// Octets that have arrived in order; read back, while ``state`` is ``State/verifying``.
    public var received: UInt64
    public var durable: UInt64
    /// In units of 256 octets.
    public var room: UInt16

    public init(
      request: UInt8, epoch: Epoch, state: State, received: UInt64, durable: UInt64, room: UInt16
    ) {
      self.request = request
      self.epoch = epoch
      self.state = state
      self.received = received
      self.durable = durable
      self.room = room
    }
  }

  /// Starts a new epoch, because data is missing or wrong.
  public struct Lost: Hashable, Sendable {
    /// Why the receiver wants data again.
    public enum Reason: UInt8, Hashable, Sendable {
      case checksum = 1
      case overflow = 2
      case asked = 3
      case storage = 4
    }

    public var request: UInt8
    public var epoch: Epoch
    /// Where the stream goes on.
    public var offset: UInt64
    /// In units of 256 octets.
    public var room: UInt16
    public var reason: Reason

    public init(request: UInt8, epoch: Epoch, offset: UInt64, room: UInt16, reason: Reason) {
      self.request = request
      self.epoch = epoch
      self.offset = offset
      self.room = room
      self.reason = reason
    }
  }

  /// Says that the object was read back from storage, found equal and made final.
  public struct Verified: Hashable, Sendable {
    public var request: UInt8
    /// The object's index, as offered.
    public var index: UInt16
    public var size: UInt64
    public var sha256: SHA256Digest

    public init(request: UInt8, index: UInt16, size: UInt64, sha256: SHA256Digest) {
      self.request = request
      self.index = index
      self.size = size
      self.sha256 = sha256
    }
  }

  /// Declines a request.
  public struct Refusal: Hashable, Sendable {
    public var request: UInt8
    public var code: HaulRefusalCode
    public var text: String

    public init(request: UInt8, code: HaulRefusalCode, text: String) {
      self.request = request
      self.code = code
      self.text = text
    }
  }

  /// Ends an object without success.
  public struct Failure: Hashable, Sendable {
    public var request: UInt8
    public var code: HaulFailureCode
    public var text: String

    public init(request: UInt8, code: HaulFailureCode, text: String) {
      self.request = request
      self.code = code
      self.text = text
    }
  }

  /// The number of the request that is answered; 0 for none.
  public var request: UInt8 {
    switch self {
    case .welcome(let message): message.request
    case .accept(let message): message.request
    case .receipt(let message): message.request
    case .lost(let message): message.request
    case .verified(let message): message.request
    case .refused(let message): message.request
    case .failed(let message): message.request
    case .busy(let request, _): request
    }
  }
}

/// Why a receiver declines a request.
public struct HaulRefusalCode: RawRepresentable, Hashable, Sendable {
  public var rawValue: UInt8
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public static let version = Self(rawValue: 1)
  public static let feature = Self(rawValue: 2)
  public static let tooLarge = Self(rawValue: 3)
  public static let noSpace = Self(rawValue: 4)
  public static let badName = Self(rawValue: 5)
  public static let nameExists = Self(rawValue: 6)
  public static let inUse = Self(rawValue: 7)
  public static let malformed = Self(rawValue: 8)
  public static let policy = Self(rawValue: 9)
}

/// Why an object has failed at the receiver.
public struct HaulFailureCode: RawRepresentable, Hashable, Sendable {
  public var rawValue: UInt8
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public static let hashDiffers = Self(rawValue: 1)
  public static let storage = Self(rawValue: 2)
  public static let noSpace = Self(rawValue: 3)
  public static let `internal` = Self(rawValue: 4)
  public static let undecodable = Self(rawValue: 5)
  /// Another file has taken the name since the offer; the object is kept, whole, without one.
  public static let nameTaken = Self(rawValue: 6)
}
