public import Foundation
internal import Radio

extension BlueZRadio {
  /// Looks at this host's Bluetooth: kernel, bus, daemon, permission, adapters, and limits that a user may meet. Changes no setting; the bus may start bluetoothd to ask it.
  ///
  /// - Parameter adapter: the one that is meant, such as `hci1`; nil: any.
  public static func examine(adapter: String? = nil) async -> [Finding] {
    Diagnosis(facts: await SystemFacts.gather(), wanted: adapter).findings
  }

  /// The address of a device by its identifier on this host; nil for one that was not made by bluetoothd's radio.
  public static func address(of identifier: UUID) -> String? {
    DeviceAddress(PeerID(identifier))?.description
  }

  /// The identifiers that a device with this address can have on this host, as an address does not say its kind; none where `text` is no address.
  public static func identifiers(ofAddress text: String) -> [UUID] {
    [DeviceAddress.Kind.public, .random].compactMap { DeviceAddress(text, kind: $0)?.peer.uuid }
  }
}
