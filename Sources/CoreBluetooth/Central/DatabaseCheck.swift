internal import Radio

/// Compares what is known of a peer's database with what the peer has, after a link was lost and made again.
///
/// One request at a time: ask for ``request``, hand in the answer, until there is none. A service is taken for changed where anything of it that
/// is known is not there as it was, also where the peer does not say. What is new does no harm: nothing known points at it.
struct DatabaseCheck: Sendable {
  /// What is known of one service, as far as it was discovered.
  struct Known: Sendable {
    var service: RemoteService
    var included: [RemoteService] = []
    var characteristics: [RemoteCharacteristic] = []
    var descriptors: [(RemoteCharacteristic, [RemoteDescriptor])] = []
  }

  fileprivate enum Step: Sendable {
    case services([RemoteService])
    case included(in: RemoteService, [RemoteService])
    case characteristics(of: RemoteService, [RemoteCharacteristic])
    case descriptors(of: RemoteCharacteristic, in: RemoteService, [RemoteDescriptor])
  }

  private var steps: [Step] = []
  /// Services that are no longer as they were.
  private(set) var changed: Set<RemoteService> = []

  init(_ known: [Known]) {
    guard !known.isEmpty else { return }
    let primary = known.map(\.service).filter(\.isPrimary)
    if !primary.isEmpty { steps.append(.services(primary)) }
    for known in known {
      if !known.included.isEmpty { steps.append(.included(in: known.service, known.included)) }
      if !known.characteristics.isEmpty {
        steps.append(.characteristics(of: known.service, known.characteristics))
      }
      for (characteristic, descriptors) in known.descriptors where !descriptors.isEmpty {
        steps.append(.descriptors(of: characteristic, in: known.service, descriptors))
      }
    }
    steps.reverse()
  }

  /// What to ask next; nil: everything was compared.
  var request: GATTRequest? {
    switch steps.last {
    case .services: .discoverServices(nil)
    case .included(in: let service, _): .discoverIncludedServices(of: service, nil)
    case .characteristics(of: let service, _): .discoverCharacteristics(of: service, nil)
    case .descriptors(of: let characteristic, _, _): .discoverDescriptors(of: characteristic)
    case nil: nil
    }
  }

  /// Takes the answer to ``request``.
  mutating func handle(_ answer: Result<GATTReply, GATTFailure>) {
    switch (steps.popLast(), answer) {
    case (.services(let known), .success(.services(let found))):
      changed.formUnion(Set(known).subtracting(found))
    case (.services(let known), _): changed.formUnion(known)
    case (.included(_, let known), .success(.services(let found)))
    where Set(found).isSuperset(of: known): break
    case (.included(let service, let known), .success(.services(let found))):
      changed.formUnion(Set(known).subtracting(found).union([service]))
    case (.included(let service, let known), _): changed.formUnion(known + [service])
    case (.characteristics(_, let known), .success(.characteristics(let found)))
    where Set(found).isSuperset(of: known): break
    case (.characteristics(let service, _), _): changed.insert(service)
    case (.descriptors(_, _, let known), .success(.descriptors(let found)))
    where Set(found).isSuperset(of: known): break
    case (.descriptors(_, let service, _), _): changed.insert(service)
    case (nil, _): break
    }
    // Nothing more is to be learnt of a service that has changed; its handles may be those of another now.
    while let next = steps.last, let service = next.service, changed.contains(service) { steps.removeLast() }
  }
}

extension DatabaseCheck.Step {
  /// The service in whose handles the step would ask; nil: in all.
  fileprivate var service: RemoteService? {
    switch self {
    case .services: nil
    case .included(in: let service, _), .characteristics(of: let service, _),
      .descriptors(of: _, in: let service, _):
      service
    }
  }
}
