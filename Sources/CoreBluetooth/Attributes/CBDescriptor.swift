internal import Locking
internal import Foundation
internal import Radio

/// A descriptor of a characteristic, or a local one in a ``CBMutableDescriptor``.
open class CBDescriptor: CBAttribute, @unchecked Sendable {
  /// A value of any type; Sendable since the types of descriptor values (String, NSNumber, Data) never change.
  struct Value: @unchecked Sendable {
    var any: Any?
  }

  struct Contents {
    weak var characteristic: CBCharacteristic?
    var value: Value
  }

  let contents: PosixMutex<Contents>
  let remote: RemoteDescriptor?

  /// A descriptor that was discovered.
  init(_cb remote: RemoteDescriptor, of characteristic: CBCharacteristic, link: LinkToken) {
    contents = PosixMutex(Contents(characteristic: characteristic, value: Value(any: nil)))
    self.remote = remote
    super.init(_cb: CBUUID(remote.uuid), link: link)
  }

  /// A local descriptor.
  init(_cb type: CBUUID, value: Any?) {
    let value = Value(any: value)
    contents = PosixMutex(Contents(value: value))
    remote = nil
    super.init(_cb: type, link: nil)
  }

  /// The characteristic that it belongs to.
  open var characteristic: CBCharacteristic? { contents.withLock { $0.characteristic } }

  /// What was last read: a `String` for a user description, an `NSNumber` for extended properties and configurations, else `Data`.
  open var value: Any? { contents.withLock { $0.value }.any }

  /// Takes octets that were read.
  func setValue(_ octets: Data) {
    let value = Value(any: Self.interpret(octets, of: uuid))
    contents.withLock { $0.value = value }
  }

  /// The value of a descriptor in the type that its UUID asks for (Core Vol 3 Part G 3.3.3).
  static func interpret(_ octets: Data, of type: CBUUID) -> Any {
    switch type.value.short {
    case 0x2901: String(decoding: octets, as: UTF8.self)
    case 0x2900, 0x2902, 0x2903:
      NSNumber(value: octets.prefix(2).reversed().reduce(UInt16(0)) { $0 << 8 | UInt16($1) })
    default: octets
    }
  }
}

/// A descriptor to publish: a user description (a `String`) or a presentation format (`Data`).
///
/// Client configuration and extended properties descriptors follow from the characteristic's properties.
open class CBMutableDescriptor: CBDescriptor, @unchecked Sendable {
  /// Makes a descriptor; `value` is needed.
  public init(type UUID: CBUUID, value: Any?) { super.init(_cb: UUID, value: value) }

  /// The octets to publish; nil where type or value is not one that can be published.
  var octets: Data? {
    switch (uuid.value.short, value) {
    case (0x2901, let text as String): Data(text.utf8)
    case (0x2904, let octets as Data): octets
    default: nil
    }
  }
}
