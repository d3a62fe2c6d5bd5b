internal import Radio

/// A characteristic in the words of bluetoothd, which knows properties and permissions only together.
///
/// Source: org.bluez.GattCharacteristic(5), "Flags"; for what a flag implies, `parse_chrc_flags` of the daemon.
struct CharacteristicFlags: Hashable, Sendable {
  let words: [String]

  /// What a central may do is bounded by the properties: the daemon refuses everything else by itself. A permission that is missing behind a
  /// property is refused by this side, call by call.
  init(_ characteristic: LocalCharacteristic) {
    let properties = characteristic.properties
    let permissions = characteristic.permissions
    var words: [String] = []
    if properties.contains(.broadcast) { words.append("broadcast") }
    if properties.contains(.read) {
      words.append(permissions.contains(.readEncrypted) ? "encrypt-read" : "read")
    }
    if properties.contains(.writeWithoutResponse) { words.append("write-without-response") }
    if properties.contains(.authenticatedSignedWrites) { words.append("authenticated-signed-writes") }
    let isWritten = !properties.isDisjoint(with: [.write, .writeWithoutResponse, .authenticatedSignedWrites])
    if isWritten && permissions.contains(.writeEncrypted) {
      // No other word asks for encryption; it adds the property "write" where that was not wanted.
      words.append("encrypt-write")
    } else if properties.contains(.write) {
      words.append("write")
    }
    let isProtected = characteristic.notifyRequiresEncryption
    if properties.contains(.notify) { words.append(isProtected ? "encrypt-notify" : "notify") }
    if properties.contains(.indicate) { words.append(isProtected ? "encrypt-indicate" : "indicate") }
    if properties.contains(.extendedProperties) { words.append("extended-properties") }
    self.words = words
  }
}

extension LocalCharacteristic {
  /// Whether some use of it needs an encrypted link.
  var needsSecurity: Bool {
    !permissions.isDisjoint(with: [.readEncrypted, .writeEncrypted]) || notifyRequiresEncryption
  }

  var isReadable: Bool { !permissions.isDisjoint(with: [.read, .readEncrypted]) }
  var isWritable: Bool { !permissions.isDisjoint(with: [.write, .writeEncrypted]) }
  var canNotify: Bool { !properties.isDisjoint(with: [.notify, .indicate]) }
  /// Subscribers confirm each value: there is no other way for it.
  var isOnlyIndicated: Bool { properties.contains(.indicate) && !properties.contains(.notify) }
}
