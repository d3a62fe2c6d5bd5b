public import Foundation

/// Everything that a device offers: its attributes with what can be read of them. UUIDs are texts, as `CBUUID.uuidString` gives them.
public struct DeviceSurvey: Hashable, Sendable {
  /// A service.
  public struct Service: Hashable, Sendable {
    /// Its type.
    public var uuid: String
    /// Whether it stands for itself; a secondary one is there to be included.
    public var isPrimary: Bool
    /// The types of the services that it includes, in the order of their declarations.
    public var included: [String] = []
    /// In the order of discovery.
    public var characteristics: [Characteristic] = []
  }

  /// A characteristic.
  public struct Characteristic: Hashable, Sendable {
    /// Its type.
    public var uuid: String
    /// As the device declares them, in the order of their bits (Core Vol 3 Part G 3.3.1.1).
    public var properties: [String]
    /// What was read; nil where it cannot be read or was refused.
    public var value: Data?
    /// Why a readable value was not read.
    public var failure: String?
    /// The types of its descriptors, in the order of discovery.
    public var descriptors: [String] = []
  }

  /// By which this host knows the device.
  public var identifier: UUID
  /// The name that it gives itself.
  public var name: String?
  /// The longest value of a write without response, which is what the ATT MTU leaves, in bytes.
  public var longestWriteWithoutResponse: Int
  /// In the order of discovery. At most 4096 questions are asked: what a device has beyond is left out.
  public var services: [Service] = []

  /// Whether it has a service.
  public func has(_ service: String) -> Bool { services.contains { $0.uuid == service } }
}
