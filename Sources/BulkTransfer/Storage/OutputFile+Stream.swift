internal import Foundation
internal import Locking
internal import SystemCalls

/// FIFOs and character devices: they are opened without waiting for whoever reads, and written to with a bound on the waiting.
extension OutputFile {
  /// Opens it once; `status` is what was found under the path before.
  func openStream(_ status: FileStatus) throws(TransferError) -> OpenFile {
    try stream.withLock { stream throws(TransferError) in
      if let stream { return stream }
      do throws(SystemError) {
        let file = try OpenFile(path, flags: O_WRONLY | O_NONBLOCK | O_NOCTTY, operations)
        let opened = try operations.status(of: file.descriptor)
        guard opened.kind == status.kind, opened.device == status.device, opened.inode == status.inode else {
          throw SystemError("openat", ESTALE)
        }
        stream = file
        return file
      } catch {
        throw failure(error)
      }
    }
  }

  func writeStream(_ contents: Data, to file: OpenFile) throws(TransferError) {
    var rest = contents[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { bytes in
        unsafe Foundation.write(file.descriptor, bytes.baseAddress, bytes.count)
      }
      let number = errno
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if count < 0, number == EINTR {
        continue
      } else if count < 0, number == EAGAIN {
        var waiting = pollfd(fd: file.descriptor, events: Int16(POLLOUT), revents: 0)
        let limit = Int32(clamping: patience.components.seconds * 1000)
        if unsafe poll(&waiting, 1, limit) == 0 { throw failure(SystemError("write", EAGAIN)) }
      } else {
        throw failure(SystemError("write", count == 0 ? ENOSPC : number))
      }
    }
  }

  private func failure(_ error: SystemError) -> TransferError {
    switch error.number {
    case ENXIO:
      TransferError(.storage, "nobody reads \(path.printable)", advice: "start what reads it first")
    case EAGAIN:
      TransferError(.storage, "whoever reads \(path.printable) takes nothing any more")
    case EPIPE:
      TransferError(.storage, "whoever read \(path.printable) has gone")
    default: .failure(error, to: "write", path)
    }
  }
}
