#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// Why a system call failed.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The call, such as `bind(2)`.
  package var call: String
  /// The number as errno(3) has it.
  package var number: Int32

  /// Takes errno, so it comes right after the call.
  package init(_ call: String) {
    let number = errno
    self.call = call
    self.number = number
  }

  package init(_ call: String, _ number: Int32) {
    self.call = call
    self.number = number
  }

  /// The C library's text for the number.
  package var text: String { unsafe String(cString: strerror(number)) }

  package var description: String { "\(call): \(text)" }
}
