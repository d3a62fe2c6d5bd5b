internal import CDBus
internal import Dispatch
internal import Glibc
internal import Readiness

/// Owns a private connection of libdbus: its watches, what it received, its end.
///
/// Only this type calls functions of libdbus that take a connection. Messages are popped, not dispatched: replies, signals and calls are
/// sorted by this module, so libdbus has no pending calls and with them no timeouts to watch.
///
/// Ownership: the pointer is one reference, given back by ``end()`` after the connection was closed, which libdbus wants in that order.
/// Callbacks get this object unretained; ``end()`` takes the callbacks away before the object can go.
// Every member is used on `queue` only, which the owner sees to and callbacks of libdbus follow: they run inside calls of ours.
@safe final class BusLink: @unchecked Sendable {
  private let queue: DispatchQueue
  private var connection: OpaquePointer?
  private let monitor: ReadinessMonitor
  private var watches: [OpaquePointer: ReadinessSource] = unsafe [:]
  private var drainIsScheduled = false
  private var isDraining = false

  /// A message with its body, or why that cannot be read.
  var onMessage: (DBusMessage, DBusError?) -> Void = { _, _ in }
  /// The connection has ended at the other side; called once.
  var onDisconnect: (DBusError) -> Void = { _ in }
  /// The socket took something.
  var onProgress: () -> Void = {}

  /// Messages in one turn of the queue, so that timers and cancellations come in between.
  private static let turn = 256

  /// Connects; a socket of the Unix family answers at once. Nothing is read before ``start()``.
  init(address: String, queue: DispatchQueue) throws(DBusError) {
    Self.prepareLibrary
    guard !address.utf8.contains(0) else {
      throw .invalid("an address with a NUL", name: DBusErrorName.badAddress)
    }
    guard let monitor = ReadinessMonitor(queue: queue) else { throw .system("epoll_create1(2)", EMFILE) }
    self.queue = queue
    self.monitor = monitor
    var error = LibraryError()
    let opened = unsafe error.collect { unsafe dbus_connection_open_private(address, $0) }
    guard let opened = unsafe opened else { throw error.value }
    unsafe connection = opened
    unsafe dbus_connection_set_exit_on_disconnect(opened, 0)
  }

  deinit { end() }

  /// libdbus would have SIGPIPE ignored in the whole process; on Linux it sends with MSG_NOSIGNAL and needs no such thing.
  private static let prepareLibrary: Void = {
    _ = dbus_threads_init_default()
    dbus_connection_set_change_sigpipe(0)
  }()

  /// Begins to read and write.
  func start() throws(DBusError) {
    guard let connection = unsafe connection else { throw .disconnected() }
    let me = unsafe Unmanaged.passUnretained(self).toOpaque()
    let done = unsafe dbus_connection_set_watch_functions(
      connection,
      { watch, me in unsafe BusLink.from(me)?.add(watch) ?? false ? 1 : 0 },
      { watch, me in unsafe BusLink.from(me)?.remove(watch) },
      { watch, me in unsafe BusLink.from(me)?.toggle(watch) },
      me, nil)
    guard done != 0 else { throw .outOfMemory }
    unsafe dbus_connection_set_dispatch_status_function(
      connection, { _, _, me in unsafe BusLink.from(me)?.scheduleDrain() }, me, nil)
    scheduleDrain()
  }

  private static func from(_ pointer: UnsafeMutableRawPointer?) -> BusLink? {
    unsafe pointer.map { unsafe Unmanaged<BusLink>.fromOpaque($0).takeUnretainedValue() }
  }

  // MARK: Watches

  private func add(_ watch: OpaquePointer?) -> Bool {
    guard let watch = unsafe watch else { return false }
    let key = UInt(bitPattern: watch)
    let descriptor = unsafe dbus_watch_get_unix_fd(watch)
    let readable = DBUS_WATCH_READABLE.rawValue
    let writable = DBUS_WATCH_WRITABLE.rawValue
    let source =
      if unsafe dbus_watch_get_flags(watch) & readable != 0 {
        ReadinessSource.reading(descriptor, monitor) { [weak self] in self?.handle(key, readable) }
      } else {
        ReadinessSource.writing(descriptor, monitor) { [weak self] in self?.handle(key, writable) }
      }
    guard let source else { return false }
    unsafe watches[watch] = source
    unsafe source.setEnabled(dbus_watch_get_enabled(watch) != 0)
    return true
  }

  private func remove(_ watch: OpaquePointer?) {
    guard let watch = unsafe watch else { return }
    unsafe watches.removeValue(forKey: watch)?.cancel()
  }

  private func toggle(_ watch: OpaquePointer?) {
    guard let watch = unsafe watch else { return }
    unsafe watches[watch]?.setEnabled(dbus_watch_get_enabled(watch) != 0)
  }

  private func handle(_ key: UInt, _ flags: UInt32) {
    // An event that was under way when the watch was removed or disabled.
    guard let watch = unsafe OpaquePointer(bitPattern: key), unsafe watches[watch] != nil,
      unsafe dbus_watch_get_enabled(watch) != 0
    else { return }
    _ = unsafe dbus_watch_handle(watch, flags)
    onProgress()
    drain()
  }

  // MARK: Received messages

  private func scheduleDrain() {
    guard !drainIsScheduled else { return }
    drainIsScheduled = true
    queue.async { [weak self] in
      guard let self else { return }
      drainIsScheduled = false
      drain()
    }
  }

  private func drain() {
    guard !isDraining else { return }
    isDraining = true
    defer { isDraining = false }
    for _ in 0..<Self.turn {
      guard let connection = unsafe connection else { return }
      guard let popped = unsafe dbus_connection_pop_message(connection) else {
        if unsafe dbus_connection_get_dispatch_status(connection) == DBUS_DISPATCH_NEED_MEMORY {
          lose(.outOfMemory)
        }
        return
      }
      receive(unsafe MessageHandle(owning: popped))
    }
    scheduleDrain()
  }

  private func receive(_ handle: consuming MessageHandle) {
    guard var message = handle.header() else { return }
    // libdbus refuses this interface from the outside, so only itself can say so.
    if message.kind == .signal, message.interface == DBusWellKnown.local {
      if message.member == "Disconnected" { lose(.disconnected()) }
      return
    }
    var failure: DBusError?
    do { try handle.readBody(into: &message) } catch { failure = error }
    onMessage(message, failure)
  }

  private func lose(_ error: DBusError) {
    let tell = onDisconnect
    end()
    tell(error)
  }

  // MARK: Sending

  /// Queues a message and returns its serial. What the socket does not take at once is sent when it is writable.
  func send(_ message: DBusMessage, maximumWaiting: Int) throws(DBusError) -> UInt32 {
    guard let connection = unsafe connection, unsafe dbus_connection_get_is_connected(connection) != 0 else {
      throw .disconnected()
    }
    guard unsafe dbus_connection_get_outgoing_size(connection) <= maximumWaiting else {
      throw DBusError(
        kind: .system, name: DBusErrorName.limitsExceeded,
        message: "more than \(maximumWaiting) octets wait for the bus to read them")
    }
    let handle = try MessageHandle.encoding(message)
    let descriptors = unsafe dbus_message_contains_unix_fds(handle.pointer) != 0
    let allowed = unsafe dbus_connection_can_send_type(connection, Int32(DBusType.descriptor.code)) != 0
    guard !descriptors || allowed else {
      throw DBusError(
        kind: .system, name: DBusErrorName.notSupported, message: "this connection passes no descriptors")
    }
    var serial: dbus_uint32_t = 0
    guard unsafe dbus_connection_send(connection, handle.pointer, &serial) != 0 else { throw .outOfMemory }
    return serial
  }

  /// Whether something waits until the socket takes it.
  var isSending: Bool {
    guard let connection = unsafe connection else { return false }
    return unsafe dbus_connection_has_messages_to_send(connection) != 0
  }

  /// Closes and releases; idempotent, and no callback of libdbus comes afterwards.
  func end() {
    guard let connection = unsafe connection else { return }
    unsafe self.connection = nil
    unsafe dbus_connection_set_dispatch_status_function(connection, nil, nil, nil)
    _ = unsafe dbus_connection_set_watch_functions(connection, nil, nil, nil, nil, nil)
    unsafe dbus_connection_close(connection)
    unsafe dbus_connection_unref(connection)
    for unsafe(_, source) in unsafe watches { source.cancel() }
    unsafe watches = unsafe [:]
  }
}

/// The identifier of this machine, as `org.freedesktop.DBus.Peer.GetMachineId` answers.
enum MachineIdentifier {
  static func read() throws(DBusError) -> String {
    var error = LibraryError()
    let characters = unsafe error.collect { unsafe dbus_try_get_local_machine_id($0) }
    guard let characters = unsafe characters else { throw error.value }
    defer { unsafe dbus_free(characters) }
    return unsafe String(cString: characters)
  }
}
