internal import Radio
internal import SystemCalls

/// A peripheral's socket that this process listens to.
final class Observer {
  let connection: AirConnection
  var peer: PeerID?

  init(connection: AirConnection) { self.connection = connection }
}

/// The visitor's part: finds peripherals, hears their advertisements, connects.
extension DirectoryAir {
  /// Searches while a client scans or waits for a link.
  func updateSearch(_ adapter: Adapter, _ host: HostState) {
    let isSearching =
      adapter.isOn && adapter.isInReach
      && adapter.centrals.values.contains { $0.scan != nil || !$0.pendingLinks.isEmpty }
    guard isSearching else {
      watch = nil
      nextLook?.cancel()
      nextLook = nil
      for observer in observers.values { observer.connection.close() }
      observers = [:]
      return
    }
    guard watch == nil else { return }
    do throws(SystemError) {
      watch = try DirectoryWatch(directory, monitor) { [weak core = host.core] in
        core?.run { ($0.surroundings as? DirectoryAir)?.look($0) }
      }
      look(host)
    } catch {
      // The system's limit of watches is reached: others may give one back.
      lookLater(after: .seconds(1), host)
    }
  }

  /// Observes all peripherals that are there.
  private func look(_ host: HostState) {
    guard watch != nil else { return host.surroundings.interestChanged(host) }
    let own = listener.map { AirFileName(peripheral: $0.name) }
    for file in directory.sockets() where observers[file] == nil && file != own {
      do throws(SystemError) {
        observe(file, try directory.connect(to: file), host)
      } catch {
        // A dead process's socket refuses until another process takes the name, which the watch tells. A full queue is
        // the one thing that passes by itself.
        if error.isTemporary { lookLater(after: .milliseconds(100), host) }
      }
    }
  }

  private func lookLater(after delay: Duration, _ host: HostState) {
    guard nextLook == nil else { return }
    nextLook = clock.schedule(after: delay) { [weak core = host.core] in
      core?.run { state in
        guard let air = state.surroundings as? DirectoryAir else { return }
        air.nextLook = nil
        air.look(state)
      }
    }
  }

  private func observe(_ file: AirFileName, _ socket: FileDescriptor, _ host: HostState) {
    guard let adapter = host.adapters.values.first else { return }
    let connection = AirConnection(socket, monitor) { [weak core = host.core] event in
      core?.run { ($0.surroundings as? DirectoryAir)?.handle(event, of: file, $0) }
    }
    observers[file] = Observer(connection: connection)
    connection.send(.hello(version: AirMessage.version, name: visitorName(of: adapter)))
    connection.send(.observe)
    connection.start()
  }

  private func handle(_ event: AirConnection.Event, of file: AirFileName, _ host: HostState) {
    guard let observer = observers[file] else { return }
    switch event {
    case .messages(let messages):
      for message in messages where observers[file] === observer { handle(message, of: file, observer, host) }
    case .drained: break
    case .ended: forget(file, host)
    }
  }

  /// A process that went comes back with a new socket, which the watch tells; one that only closed is asked again.
  private func forget(_ file: AirFileName, _ host: HostState) {
    observers.removeValue(forKey: file)?.connection.close()
    lookLater(after: .seconds(1), host)
  }

  private func handle(
    _ message: AirMessage, of file: AirFileName, _ observer: Observer, _ host: HostState
  ) {
    switch (message, observer.peer) {
    case (.hello(AirMessage.version, let name), nil) where AirFileName(peripheral: name) == file:
      observer.peer = PeerID(adapterName: name)
    case (.advertisement(let advertisement, let rssi, let isConnectable), let peer?):
      guard let adapter = host.adapters.values.first else { return }
      host.sighted(advertisement, of: peer, rssi: Int(rssi), isConnectable: isConnectable, by: adapter)
      if isConnectable, adapter.wantsLink(to: peer) { connect(to: peer, file, adapter, host) }
    default:
      // Another version, another name than its file has, or out of turn.
      forget(file, host)
    }
  }

  // MARK: Links

  private func connect(to peer: PeerID, _ file: AirFileName, _ adapter: Adapter, _ host: HostState) {
    // The link before may still be ending; then the next advertisement is in time.
    guard !remoteLinks.values.contains(where: { $0.peer == peer }) else { return }
    let socket: FileDescriptor
    do throws(SystemError) { socket = try directory.connect(to: file) } catch { return }
    let id = host.makeIdentity()
    let connection = AirConnection(socket, monitor) { [weak core = host.core] event in
      core?.run { ($0.surroundings as? DirectoryAir)?.remoteLinks[id]?.handle(event) }
    }
    let link = RemoteLink(
      id: id, peer: peer, file: file, connection: connection, handle: nextHandle(), air: self, host: host)
    remoteLinks[id] = link
    link.start(name: visitorName(of: adapter), parameters: adapter.parameters)
  }

  /// Forgets a link, or an attempt at one.
  func remove(_ link: RemoteLink) { remoteLinks[link.id] = nil }
}
