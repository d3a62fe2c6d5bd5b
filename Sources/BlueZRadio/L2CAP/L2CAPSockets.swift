internal import CBluez
internal import CLinux
internal import DBus
internal import Glibc
internal import Radio
internal import SystemCalls

/// How safe a link must be before a channel is opened (BT_SECURITY of `bluetooth(7)` sockets).
///
/// The kernel pairs or encrypts by itself until the level is reached, with the help of bluetoothd's agent.
enum L2CAPSecurity: UInt8, Hashable, Sendable, Comparable {
  /// Whatever the link is.
  case low = 1
  /// Encrypted.
  case medium = 2
  /// Encrypted with a key that nobody in between can have.
  case high = 3

  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The system's calls for channels, so that their users can be tried without an adapter.
protocol L2CAPSockets: Sendable {
  /// Begins to connect; the socket is writable, or has an error, once that is over.
  func connect(_ request: L2CAPRequest) throws(SystemError) -> UnixDescriptor

  /// Accepts channels on a PSM of an adapter.
  func listen(on psm: PSM, of adapter: DeviceAddress, _ security: L2CAPSecurity) throws(SystemError)
    -> UnixDescriptor

  /// The next channel that a peer has opened, or nil where none waits.
  func accept(_ listener: UnixDescriptor) throws(SystemError) -> (UnixDescriptor, DeviceAddress)?

  /// What the two sides of a connected channel have agreed on; fails with ENOTCONN where it is not connected.
  func limits(of socket: UnixDescriptor) throws(SystemError) -> SDUStream.Limits

  /// The level that a socket asks for; while it is connecting, the kernel raises it where the peer asks for more.
  func security(of socket: UnixDescriptor) -> L2CAPSecurity?
}

/// Which channel to open.
struct L2CAPRequest: Hashable, Sendable {
  var device: DeviceAddress
  /// The adapter to go through.
  var adapter: DeviceAddress
  var psm: PSM
  var security: L2CAPSecurity
}

/// The kernel's L2CAP sockets. Source: net/bluetooth/l2cap_sock.c of Linux 6.12.
struct KernelL2CAPSockets: L2CAPSockets {
  /// How long an SDU of a peer may be (BT_RCVMTU).
  ///
  /// Larger ones cost a peer fewer system calls, up to a point; with 65535 a kernel of version 6.12 never delivers any.
  var receiveMTU: UInt16 = 16 * 1024
  /// How many channels may wait to be accepted; the kernel refuses more for want of resources.
  static let backlog: Int32 = 8

  func connect(_ request: L2CAPRequest) throws(SystemError) -> UnixDescriptor {
    let socket = try make(request.adapter, psm: 0, request.security)
    var address = sockaddr_l2(request.device, psm: request.psm)
    while unsafe withAddress(&address, { unsafe Glibc.connect(socket.raw, $0, $1) }) != 0 {
      switch errno {
      case EINTR: continue
      case EINPROGRESS: return socket
      default: throw SystemError("connect(2)")
      }
    }
    return socket
  }

  func listen(on psm: PSM, of adapter: DeviceAddress, _ security: L2CAPSecurity) throws(SystemError)
    -> UnixDescriptor
  {
    let socket = try make(adapter, psm: psm, security)
    guard Glibc.listen(socket.raw, Self.backlog) == 0 else { throw SystemError("listen(2)") }
    return socket
  }

  func accept(_ listener: UnixDescriptor) throws(SystemError) -> (UnixDescriptor, DeviceAddress)? {
    while true {
      var address = sockaddr_l2()
      let raw = unsafe withUnsafeMutablePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { rebound in
          var length = socklen_t(MemoryLayout<sockaddr_l2>.size)
          return unsafe clinux_accept(listener.raw, rebound, &length)
        }
      }
      if raw >= 0 { return (UnixDescriptor(owning: raw), DeviceAddress(address)) }
      switch errno {
      case EINTR, ECONNABORTED: continue
      case EAGAIN: return nil
      default: throw SystemError("accept4(2)")
      }
    }
  }

  func limits(of socket: UnixDescriptor) throws(SystemError) -> SDUStream.Limits {
    SDUStream.Limits(
      sendMTU: Int(try option(BT_SNDMTU, of: socket, as: UInt16.self)),
      receiveMTU: Int(try option(BT_RCVMTU, of: socket, as: UInt16.self)))
  }

  func security(of socket: UnixDescriptor) -> L2CAPSecurity? {
    (try? option(BT_SECURITY, of: socket, as: bt_security.self)).flatMap { L2CAPSecurity(rawValue: $0.level) }
  }

  /// A socket of an adapter. It does not block and is not inherited by programs that are started.
  private func make(
    _ adapter: DeviceAddress, psm: PSM, _ security: L2CAPSecurity
  ) throws(SystemError) -> UnixDescriptor {
    let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let raw = Glibc.socket(AF_BLUETOOTH, type, BTPROTO_L2CAP)
    guard raw >= 0 else { throw SystemError("socket(2)") }
    let socket = UnixDescriptor(owning: raw)
    var address = sockaddr_l2(adapter, psm: psm)
    guard unsafe withAddress(&address, { unsafe bind(raw, $0, $1) }) == 0 else {
      throw SystemError("bind(2)")
    }
    try set(BT_SECURITY, of: socket, to: bt_security(level: security.rawValue, key_size: 0))
    try set(BT_RCVMTU, of: socket, to: receiveMTU)
    return socket
  }

  private func withAddress(
    _ address: inout sockaddr_l2, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { rebound in
        unsafe body(rebound, socklen_t(MemoryLayout<sockaddr_l2>.size))
      }
    }
  }

  private func set<Value: BitwiseCopyable>(
    _ name: Int32, of socket: UnixDescriptor, to value: Value
  ) throws(SystemError) {
    let result = unsafe withUnsafeBytes(of: value) { bytes in
      unsafe setsockopt(socket.raw, SOL_BLUETOOTH, name, bytes.baseAddress, socklen_t(bytes.count))
    }
    guard result == 0 else { throw SystemError("setsockopt(2)") }
  }

  private func option<Value: BitwiseCopyable & SocketOption>(
    _ name: Int32, of socket: UnixDescriptor, as _: Value.Type
  ) throws(SystemError) -> Value {
    var value = Value()
    let result = unsafe withUnsafeMutableBytes(of: &value) { bytes in
      var length = socklen_t(bytes.count)
      return unsafe getsockopt(socket.raw, SOL_BLUETOOTH, name, bytes.baseAddress, &length)
    }
    guard result == 0 else { throw SystemError("getsockopt(2)") }
    return value
  }
}

/// What an option of a socket is read into.
private protocol SocketOption {
  init()
}

extension UInt16: SocketOption {}
extension bt_security: SocketOption {}

extension sockaddr_l2 {
  fileprivate init(_ device: DeviceAddress, psm: PSM) {
    self.init()
    l2_family = sa_family_t(AF_BLUETOOTH)
    l2_psm = psm.littleEndian
    l2_bdaddr_type = UInt8(device.kind == .public ? BDADDR_LE_PUBLIC : BDADDR_LE_RANDOM)
    let octets = device.octets
    l2_bdaddr.b = (octets[5], octets[4], octets[3], octets[2], octets[1], octets[0])
  }
}

extension DeviceAddress {
  fileprivate init(_ address: sockaddr_l2) {
    let b = address.l2_bdaddr.b
    let value = [b.5, b.4, b.3, b.2, b.1, b.0].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    self.init(
      value: value, kind: Int32(address.l2_bdaddr_type) == BDADDR_LE_RANDOM ? .random : .public)
  }
}
