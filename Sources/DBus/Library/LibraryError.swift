internal import CDBus

/// Owns what a function of libdbus has to say about its failure.
@safe struct LibraryError: ~Copyable {
  private var raw = unsafe CDBus.DBusError()

  init() { unsafe dbus_error_init(&raw) }

  deinit {
    var raw = unsafe raw
    unsafe dbus_error_free(&raw)
  }

  /// Runs a function that takes where to write an error.
  mutating func collect<Result>(_ function: (UnsafeMutablePointer<CDBus.DBusError>) -> Result) -> Result {
    unsafe function(&raw)
  }

  /// The error, or one that says that there is none.
  var value: DBusError {
    guard let name = unsafe raw.name else {
      return DBusError(kind: .system, name: DBusErrorName.failed, message: "libdbus failed without a reason")
    }
    let message = unsafe raw.message.map { unsafe String(cString: $0) } ?? ""
    return DBusError(kind: .system, name: unsafe String(cString: name), message: message)
  }
}
