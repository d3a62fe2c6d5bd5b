import Radio
import Testing

@testable import CoreBluetooth

@Suite struct DatabaseCheckTests {
  private static let included = RemoteService(
    handles: 50...60, uuid: BluetoothUUID(0x1812 as UInt16), isPrimary: false)

  private static let known = [
    DatabaseCheck.Known(
      service: FakeDatabase.service, included: [included], characteristics: FakeDatabase.characteristics,
      descriptors: [(FakeDatabase.notifying, FakeDatabase.descriptors)]),
    DatabaseCheck.Known(service: FakeDatabase.other),
    DatabaseCheck.Known(service: included, characteristics: [FakeDatabase.plain]),
  ]

  /// What has become of the device.
  enum Change: CaseIterable, Sendable {
    case none, more, serviceGone, serviceMoved, serviceOfAnotherType, includedGone, characteristicGone
    case characteristicMoved, otherProperties, descriptorGone, characteristicOfIncludedGone, refusesServices
    case refusesCharacteristics, refusesDescriptors, answersNonsense
  }

  private func answer(_ request: GATTRequest, _ change: Change) -> Result<GATTReply, GATTFailure> {
    let refusal = Result<GATTReply, GATTFailure>.failure(.att(.unlikelyError))
    if change == .answersNonsense { return .success(.done) }
    switch request {
    case .discoverServices:
      var first = FakeDatabase.service
      switch change {
      case .serviceMoved: first.handles = 2...20
      case .serviceOfAnotherType: first.uuid = BluetoothUUID(0x1810 as UInt16)
      case .refusesServices: return refusal
      default: break
      }
      let extra = RemoteService(handles: 70...80, uuid: first.uuid, isPrimary: true)
      let all = change == .more ? [extra, FakeDatabase.other, first] : [first, FakeDatabase.other]
      return .success(.services(change == .serviceGone ? [FakeDatabase.other] : all))
    case .discoverIncludedServices: return .success(.services(change == .includedGone ? [] : [Self.included]))
    case .discoverCharacteristics(of: let service, _):
      guard service == FakeDatabase.service else {
        return .success(.characteristics(change == .characteristicOfIncludedGone ? [] : [FakeDatabase.plain]))
      }
      var all = FakeDatabase.characteristics
      switch change {
      case .characteristicGone: all.removeLast()
      case .characteristicMoved: all[1].handle = 8
      case .otherProperties: all[3].properties = [.read, .write]
      case .refusesCharacteristics: return refusal
      default: break
      }
      return .success(.characteristics(all.reversed()))
    case .discoverDescriptors:
      if change == .refusesDescriptors { return refusal }
      return .success(.descriptors(FakeDatabase.descriptors.dropLast(change == .descriptorGone ? 1 : 0)))
    default: return refusal
    }
  }

  @Test(arguments: Change.allCases)
  func findsWhatHasChanged(change: Change) {
    var check = DatabaseCheck(Self.known)
    var asked: [GATTRequest] = []
    while let request = check.request, asked.count < 20 {
      asked.append(request)
      check.handle(answer(request, change))
    }
    let expected: Set<RemoteService> =
      switch change {
      case .none, .more: []
      case .includedGone: [FakeDatabase.service, Self.included]
      case .characteristicOfIncludedGone: [Self.included]
      case .refusesServices: [FakeDatabase.service, FakeDatabase.other]
      case .answersNonsense: [FakeDatabase.service, FakeDatabase.other, Self.included]
      default: [FakeDatabase.service]
      }
    #expect(check.changed == expected)
    // Each thing is asked once; of a service that has changed, nothing more.
    #expect(Set(asked).count == asked.count)
    if change == .none { #expect(asked.count == 5) }
    if change == .serviceGone { #expect(asked.count == 2) }
  }

  @Test func asksNothingWhereNothingIsKnown() {
    var check = DatabaseCheck([])
    #expect(check.request == nil)
    check.handle(.success(.done))
    #expect(check.changed == [])
  }
}
