/// The extension of WELCOME, OFFER and ACCEPT that is about coded objects.
enum CodingExtension {
  static let type: UInt8 = 0x01
  /// Zstandard, as a coding and as the bit of a set of codings.
  static let zstandard: UInt8 = 1

  static func value(in extensions: [HaulExtension]) -> [UInt8]? {
    extensions.first { $0.type == type }?.value
  }
}

/// What a receiver can decode, as WELCOME says.
struct CodingSupport: Hashable, Sendable {
  /// Octets of a base that it can hold, as a power of two; nil: it uses no bases.
  var basePower: UInt8?

  init(basePower: UInt8?) { self.basePower = basePower }

  /// Nil where nothing that this version knows is supported. Octets after the known fields are skipped; a receiver that can hold more of a
  /// base than any window takes can hold the largest.
  init?(in extensions: [HaulExtension]) {
    guard let value = CodingExtension.value(in: extensions), value.count >= 2,
      value[0] & CodingExtension.zstandard != 0
    else { return nil }
    basePower =
      value[1] < BaseWindow.powers.lowerBound ? nil : min(value[1], BaseWindow.powers.upperBound)
  }

  var encoded: HaulExtension {
    HaulExtension(type: CodingExtension.type, value: [CodingExtension.zstandard, basePower ?? 0])
  }
}

/// What a sender asks for with an offer.
struct CodingRequest: Hashable, Sendable {
  /// The base that the receiver is to prove.
  struct Base: Hashable, Sendable {
    var power: UInt8
    var identity: BaseRequest
  }

  var base: Base?

  init(base: Base? = nil) { self.base = base }

  /// Nil where nothing is asked for that this version knows.
  init?(in extensions: [HaulExtension]) throws(HaulCodingError) {
    guard let value = CodingExtension.value(in: extensions) else { return nil }
    var reader = MessageReader(value)
    guard try reader.u8() == CodingExtension.zstandard else { return nil }
    guard reader.remaining > 0 else { return }
    let power = try reader.u8()
    let sha256 = try reader.digest()
    let size = try reader.u48()
    let challenge = try reader.octets(BaseImage.challengeCount)
    guard BaseWindow.powers.contains(power) else {
      throw .invalidField("the part of a base is 2 to the power of \(power)")
    }
    guard size > 0 else { throw .invalidField("the base is empty") }
    base = Base(power: power, identity: BaseRequest(sha256: sha256, size: size, challenge: challenge))
  }

  var encoded: HaulExtension {
    var writer = MessageWriter()
    writer.u8(CodingExtension.zstandard)
    if let base {
      writer.u8(base.power)
      writer.digest(base.identity.sha256)
      writer.u48(base.identity.size)
      writer.octets(base.identity.challenge)
    }
    return HaulExtension(type: CodingExtension.type, value: writer.bytes)
  }
}

/// A base that a storage is to look for, and the challenge that its proof answers.
public struct BaseRequest: Hashable, Sendable {
  public var sha256: SHA256Digest
  /// In octets.
  public var size: UInt64
  /// Eight octets.
  public var challenge: [UInt8]

  public init(sha256: SHA256Digest, size: UInt64, challenge: [UInt8]) {
    self.sha256 = sha256
    self.size = size
    self.challenge = challenge
  }
}

extension HaulReply.Accept {
  /// The receiver's word on a coding that the OFFER asks for.
  public enum Coding: Hashable, Sendable {
    case uncoded
    /// Coded; with the proof of the base, where one was named.
    case coded(proof: [UInt8]?)
  }
}

extension HaulReply.Accept.Coding {
  /// Nil where the extensions say nothing that this version knows.
  init?(in extensions: [HaulExtension]) {
    guard let value = CodingExtension.value(in: extensions), let coding = value.first else { return nil }
    let proof = value.dropFirst().prefix(BaseImage.proofCount)
    switch coding {
    case 0: self = .uncoded
    case CodingExtension.zstandard:
      self = .coded(proof: proof.count == BaseImage.proofCount ? Array(proof) : nil)
    default: return nil
    }
  }

  var encoded: HaulExtension {
    switch self {
    case .uncoded: HaulExtension(type: CodingExtension.type, value: [0])
    case .coded(let proof):
      HaulExtension(type: CodingExtension.type, value: [CodingExtension.zstandard] + (proof ?? []))
    }
  }
}
