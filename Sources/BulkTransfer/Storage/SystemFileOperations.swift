internal import Foundation
internal import Locking
internal import SystemCalls

// The compiler finds the members of `stat` in whichever C module it loaded first.
#if os(Linux)
  internal import CDispatch
  internal import CLinux
  internal import CoreFoundation
  internal import Glibc
#endif

/// The file system of this machine.
struct SystemFileOperations: FileOperations {
  func open(_ name: String, in directory: Int32?, flags: Int32, mode: UInt32) throws(SystemError) -> Int32 {
    try retrying("openat") {
      unsafe openat(directory ?? AT_FDCWD, name, flags | O_CLOEXEC, mode_t(truncatingIfNeeded: mode))
    }
  }

  func close(_ descriptor: Int32) {
    // After EINTR the descriptor is gone on Linux (close(2)); there is nothing to be done about other errors.
    _ = Foundation.close(descriptor)
  }

  func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
    var buffer = stat()
    _ = try retrying("fstat") { unsafe fstat(descriptor, &buffer) }
    return FileStatus(buffer)
  }

  func status(
    of name: String, in directory: Int32?, followingLinks: Bool
  ) throws(SystemError) -> FileStatus {
    var buffer = stat()
    let flags = followingLinks ? 0 : AT_SYMLINK_NOFOLLOW
    _ = try retrying("fstatat") { unsafe fstatat(directory ?? AT_FDCWD, name, &buffer, flags) }
    return FileStatus(buffer)
  }

  func read(_ descriptor: Int32, at offset: UInt64, count: Int) throws(SystemError) -> Data {
    var bytes = Data(count: count)
    var done = 0
    while done < count {
      let position = off_t(clamping: offset + UInt64(done))
      let got = unsafe bytes.withUnsafeMutableBytes { buffer in
        Result { () throws(SystemError) in
          let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
          return try retrying("pread") { unsafe pread(descriptor, rest.baseAddress, rest.count, position) }
        }
      }
      let step = try got.get()
      if step == 0 { break }
      done += step
    }
    return done == count ? bytes : bytes.prefix(done)
  }

  func write(_ descriptor: Int32, _ bytes: Data, at offset: UInt64) throws(SystemError) {
    let result = unsafe bytes.withUnsafeBytes { buffer in
      Result { () throws(SystemError) in
        var done = 0
        while done < buffer.count {
          let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[done...])
          let position = off_t(clamping: offset + UInt64(done))
          done += try retrying("pwrite") { unsafe pwrite(descriptor, rest.baseAddress, rest.count, position) }
        }
      }
    }
    try result.get()
  }

  func truncate(_ descriptor: Int32, to size: UInt64) throws(SystemError) {
    _ = try retrying("ftruncate") { ftruncate(descriptor, off_t(clamping: size)) }
  }

  func sync(_ descriptor: Int32) throws(SystemError) {
    #if canImport(Darwin)
      // fsync(2) of Darwin leaves the bytes in the drive's cache; F_FULLFSYNC does not, but not every file system has it.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
    #endif
    _ = try retrying("fsync") { fsync(descriptor) }
  }

  func syncContents(_ descriptor: Int32) throws(SystemError) {
    #if canImport(Darwin)
      try sync(descriptor)
    #else
      _ = try retrying("fdatasync") { fdatasync(descriptor) }
    #endif
  }

  func forgetCached(_ descriptor: Int32) {
    #if os(Linux)
      _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
    #endif
  }

  func rename(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {
    _ = try retrying("renameat") { unsafe renameat(directory, name, directory, newName) }
  }

  func renameExclusively(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {
    _ = try retrying("renameat2") {
      #if canImport(Darwin)
        unsafe renameatx_np(directory, name, directory, newName, UInt32(RENAME_EXCL))
      #else
        unsafe clinux_rename(directory, name, newName, Int32(CLINUX_NO_REPLACE))
      #endif
    }
  }

  func exchange(_ name: String, with other: String, in directory: Int32) throws(SystemError) {
    _ = try retrying("renameat2") {
      #if canImport(Darwin)
        unsafe renameatx_np(directory, name, directory, other, UInt32(RENAME_SWAP))
      #else
        unsafe clinux_rename(directory, name, other, Int32(CLINUX_EXCHANGE))
      #endif
    }
  }

  func target(ofLink path: String) throws(SystemError) -> String {
    var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = try retrying("readlink") { unsafe readlink(path, &bytes, bytes.count) }
    return String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  func link(_ name: String, to newName: String, in directory: Int32) throws(SystemError) {
    _ = try retrying("linkat") { unsafe linkat(directory, name, directory, newName, 0) }
  }

  func remove(_ name: String, in directory: Int32) throws(SystemError) {
    _ = try retrying("unlinkat") { unsafe unlinkat(directory, name, 0) }
  }

  func makeDirectory(_ name: String, in directory: Int32?, mode: UInt32) throws(SystemError) {
    _ = try retrying("mkdirat") {
      unsafe mkdirat(directory ?? AT_FDCWD, name, mode_t(truncatingIfNeeded: mode))
    }
  }

  func names(in directory: Int32) throws(SystemError) -> [String] {
    // The stream takes over its descriptor and moves its position, so it gets one of its own.
    let own = try open(".", in: directory, flags: O_RDONLY | O_DIRECTORY, mode: 0)
    guard let stream = unsafe fdopendir(own) else {
      let error = SystemError("fdopendir", errno)
      close(own)
      throw error
    }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(stream) else {
        if errno != 0 { throw SystemError("readdir", errno) }
        return names
      }
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) {
          unsafe String(cString: $0)
        }
      }
      if name != ".", name != ".." { names.append(name) }
    }
  }

  func lock(_ descriptor: Int32) throws(SystemError) -> Bool {
    switch FileClaim.take(descriptor) {
    case .claimed: true
    case .taken: false
    case .failed(let code): throw SystemError("flock", code)
    }
  }

  func unlock(_ descriptor: Int32) { FileClaim.release(descriptor) }

  func freeSpace(of descriptor: Int32) throws(SystemError) -> UInt64 {
    var buffer = statvfs()
    _ = try retrying("fstatvfs") { unsafe fstatvfs(descriptor, &buffer) }
    let (bytes, overflow) = UInt64(buffer.f_bavail).multipliedReportingOverflow(by: UInt64(buffer.f_frsize))
    return overflow ? .max : bytes
  }

  /// Calls until the call was not interrupted by a signal.
  private func retrying<Result: SignedInteger>(
    _ call: String, _ body: () -> Result
  ) throws(SystemError) -> Result {
    while true {
      let result = body()
      if result >= 0 { return result }
      let code = errno
      if code != EINTR { throw SystemError(call, code) }
    }
  }
}

extension FileStatus {
  fileprivate init(_ buffer: stat) {
    kind =
      switch buffer.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      case S_IFLNK: .symbolicLink
      case S_IFIFO: .fifo
      case S_IFSOCK: .socket
      case S_IFCHR: .characterDevice
      case S_IFBLK: .blockDevice
      default: .other
      }
    size = UInt64(clamping: buffer.st_size)
    permissions = UInt32(buffer.st_mode) & 0o777
    device = UInt64(truncatingIfNeeded: buffer.st_dev)
    inode = UInt64(buffer.st_ino)
    links = Int(clamping: buffer.st_nlink)
    #if canImport(Darwin)
      let (modified, changed) = (buffer.st_mtimespec, buffer.st_ctimespec)
    #else
      let (modified, changed) = (buffer.st_mtim, buffer.st_ctim)
    #endif
    self.modified = Int64(modified.tv_sec) &* 1_000_000_000 &+ Int64(modified.tv_nsec)
    self.changed = Int64(changed.tv_sec) &* 1_000_000_000 &+ Int64(changed.tv_nsec)
  }
}
