import CoreBluetooth
import Testing

/// Strings and numbers that programs store, log and send: they are those of Apple's framework.
@Suite struct ConstantTests {
  @Test(arguments: [
    (CBAdvertisementDataLocalNameKey, "kCBAdvDataLocalName"),
    (CBAdvertisementDataTxPowerLevelKey, "kCBAdvDataTxPowerLevel"),
    (CBAdvertisementDataServiceUUIDsKey, "kCBAdvDataServiceUUIDs"),
    (CBAdvertisementDataServiceDataKey, "kCBAdvDataServiceData"),
    (CBAdvertisementDataManufacturerDataKey, "kCBAdvDataManufacturerData"),
    (CBAdvertisementDataOverflowServiceUUIDsKey, "kCBAdvDataHashedServiceUUIDs"),
    (CBAdvertisementDataIsConnectable, "kCBAdvDataIsConnectable"),
    (CBAdvertisementDataSolicitedServiceUUIDsKey, "kCBAdvDataSolicitedServiceUUIDs"),
    (CBCentralManagerOptionShowPowerAlertKey, "kCBInitOptionShowPowerAlert"),
    (CBCentralManagerOptionRestoreIdentifierKey, "kCBInitOptionRestoreIdentifier"),
    (CBCentralManagerOptionDeviceAccessForMedia, "kCBInitOptionDeviceAccessForMedia"),
    (CBCentralManagerScanOptionAllowDuplicatesKey, "kCBScanOptionAllowDuplicates"),
    (CBCentralManagerScanOptionSolicitedServiceUUIDsKey, "kCBScanOptionSolicitedServiceUUIDs"),
    (CBConnectPeripheralOptionNotifyOnConnectionKey, "kCBConnectOptionNotifyOnConnection"),
    (CBConnectPeripheralOptionNotifyOnDisconnectionKey, "kCBConnectOptionNotifyOnDisconnection"),
    (CBConnectPeripheralOptionNotifyOnNotificationKey, "kCBConnectOptionNotifyOnNotification"),
    (CBConnectPeripheralOptionStartDelayKey, "kCBConnectOptionStartDelay"),
    (CBConnectPeripheralOptionEnableTransportBridgingKey, "kCBConnectOptionEnableTransportBridging"),
    (CBConnectPeripheralOptionRequiresANCS, "kCBConnectOptionRequiresANCS"),
    (CBConnectPeripheralOptionEnableAutoReconnect, "kCBConnectOptionEnableAutoReconnect"),
    (CBCentralManagerRestoredStatePeripheralsKey, "kCBRestoredPeripherals"),
    (CBCentralManagerRestoredStateScanServicesKey, "kCBRestoredScanServices"),
    (CBCentralManagerRestoredStateScanOptionsKey, "kCBRestoredScanOptions"),
    (CBPeripheralManagerOptionShowPowerAlertKey, "kCBInitOptionShowPowerAlert"),
    (CBPeripheralManagerOptionRestoreIdentifierKey, "kCBInitOptionRestoreIdentifier"),
    (CBPeripheralManagerRestoredStateServicesKey, "kCBRestoredServices"),
    (CBPeripheralManagerRestoredStateAdvertisementDataKey, "kCBRestoredAdvertisement"),
    (
      CBConnectionEventMatchingOption.serviceUUIDs.rawValue,
      "kCBConnectionEventMatchingOptionServiceUUIDs"
    ),
    (
      CBConnectionEventMatchingOption.peripheralUUIDs.rawValue,
      "kCBConnectionEventMatchingOptionPeripheralUUIDs"
    ),
    (CBErrorDomain, "CBErrorDomain"), (CBATTErrorDomain, "CBATTErrorDomain"),
  ])
  func keysHaveTheirStrings(key: String, string: String) { #expect(key == string) }

  @Test(arguments: [
    (CBUUIDCharacteristicExtendedPropertiesString, "2900"),
    (CBUUIDCharacteristicUserDescriptionString, "2901"),
    (CBUUIDClientCharacteristicConfigurationString, "2902"),
    (CBUUIDServerCharacteristicConfigurationString, "2903"),
    (CBUUIDCharacteristicFormatString, "2904"),
    (CBUUIDCharacteristicAggregateFormatString, "2905"),
    (CBUUIDCharacteristicValidRangeString, "2906"),
    (CBUUIDCharacteristicObservationScheduleString, "2910"),
    (CBUUIDL2CAPPSMCharacteristicString, "ABDD3056-28FA-441D-A470-55A75A52553A"),
  ])
  func assignedNumbersAreUUIDs(text: String, expected: String) {
    #expect(text == expected)
    #expect(CBUUID(string: text).uuidString == expected)
  }

  @Test func matchingOptionsAreKeysOfADictionary() {
    let own = CBConnectionEventMatchingOption(rawValue: "own")
    let options: [CBConnectionEventMatchingOption: Any] = [.serviceUUIDs: 1, .peripheralUUIDs: 2, own: 3]
    #expect(options[CBConnectionEventMatchingOption(rawValue: "own")] as? Int == 3)
    #expect(options.count == 3)
    #expect(MemoryLayout<CBL2CAPPSM>.size == 2)
  }

  private func check<Value: RawRepresentable & Equatable>(
    _ cases: [Value], sourceLocation: SourceLocation = #_sourceLocation
  ) where Value.RawValue == Int {
    for (number, value) in cases.enumerated() {
      #expect(value.rawValue == number, sourceLocation: sourceLocation)
      #expect(Value(rawValue: number) == value, sourceLocation: sourceLocation)
    }
    #expect(Value(rawValue: cases.count) == nil, sourceLocation: sourceLocation)
    #expect(Value(rawValue: -1) == nil, sourceLocation: sourceLocation)
  }

  @Test func casesHaveTheirNumbers() {
    check([
      CBManagerState.unknown, .resetting, .unsupported, .unauthorized, .poweredOff, .poweredOn,
    ])
    check([CBManagerAuthorization.notDetermined, .restricted, .denied, .allowedAlways])
    check([CBPeripheralState.disconnected, .connecting, .connected, .disconnecting])
    check([CBCharacteristicWriteType.withResponse, .withoutResponse])
    check([CBConnectionEvent.peerDisconnected, .peerConnected])
    check([CBPeripheralManagerConnectionLatency.low, .medium, .high])
    check([
      CBError.Code.unknown, .invalidParameters, .invalidHandle, .notConnected, .outOfSpace,
      .operationCancelled, .connectionTimeout, .peripheralDisconnected, .uuidNotAllowed,
      .alreadyAdvertising, .connectionFailed, .connectionLimitReached, .unkownDevice,
      .operationNotSupported, .peerRemovedPairingInformation, .encryptionTimedOut, .tooManyLEPairedDevices,
      .leGattExceededBackgroundNotificationLimit, .leGattNearBackgroundNotificationLimit,
    ])
  }

  /// The shorthands of an error type are the codes of the same names.
  @Test func errorsNameTheirCodes() {
    let link: [CBError.Code] = [
      CBError.unknown, CBError.invalidParameters, CBError.invalidHandle, CBError.notConnected,
      CBError.outOfSpace, CBError.operationCancelled, CBError.connectionTimeout,
      CBError.peripheralDisconnected, CBError.uuidNotAllowed, CBError.alreadyAdvertising,
      CBError.connectionFailed, CBError.connectionLimitReached, CBError.unkownDevice,
      CBError.operationNotSupported, CBError.peerRemovedPairingInformation, CBError.encryptionTimedOut,
      CBError.tooManyLEPairedDevices, CBError.leGattExceededBackgroundNotificationLimit,
      CBError.leGattNearBackgroundNotificationLimit,
    ]
    #expect(link.map(\.rawValue) == Array(0...18))
    #expect(CBError.unknownDevice == .unkownDevice)
    #expect(CBError.Code.unknownDevice == .unkownDevice)
    let att: [CBATTError.Code] = [
      CBATTError.success, CBATTError.invalidHandle, CBATTError.readNotPermitted,
      CBATTError.writeNotPermitted, CBATTError.invalidPdu, CBATTError.insufficientAuthentication,
      CBATTError.requestNotSupported, CBATTError.invalidOffset, CBATTError.insufficientAuthorization,
      CBATTError.prepareQueueFull, CBATTError.attributeNotFound, CBATTError.attributeNotLong,
      CBATTError.insufficientEncryptionKeySize, CBATTError.invalidAttributeValueLength,
      CBATTError.unlikelyError, CBATTError.insufficientEncryption, CBATTError.unsupportedGroupType,
      CBATTError.insufficientResources,
    ]
    #expect(att.map(\.rawValue) == Array(0x00...0x11))
    #expect(
      att == [
        .success, .invalidHandle, .readNotPermitted, .writeNotPermitted, .invalidPdu,
        .insufficientAuthentication, .requestNotSupported, .invalidOffset, .insufficientAuthorization,
        .prepareQueueFull, .attributeNotFound, .attributeNotLong, .insufficientEncryptionKeySize,
        .invalidAttributeValueLength, .unlikelyError, .insufficientEncryption, .unsupportedGroupType,
        .insufficientResources,
      ])
  }

  private func check<Options: OptionSet & Equatable>(
    _ members: [Options], sourceLocation: SourceLocation = #_sourceLocation
  ) where Options.RawValue == UInt, Options.Element == Options {
    for (bit, member) in members.enumerated() {
      #expect(member.rawValue == 1 << UInt(bit), sourceLocation: sourceLocation)
    }
    #expect(Options(members).rawValue == (1 << UInt(members.count)) - 1, sourceLocation: sourceLocation)
    #expect(Options(rawValue: 0).isEmpty, sourceLocation: sourceLocation)
  }

  @Test func optionsHaveTheirBits() {
    check([
      CBCharacteristicProperties.broadcast, .read, .writeWithoutResponse, .write, .notify, .indicate,
      .authenticatedSignedWrites, .extendedProperties, .notifyEncryptionRequired,
      .indicateEncryptionRequired,
    ])
    check([
      CBAttributePermissions.readable, .writeable, .readEncryptionRequired, .writeEncryptionRequired,
    ])
    check([CBCentralManager.Feature.extendedScanAndConnect])
  }
}
