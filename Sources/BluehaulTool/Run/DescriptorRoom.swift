internal import Glibc

/// How many descriptors a process may still open (getrlimit(2), RLIMIT_NOFILE).
///
/// Where there are none, parts of the system's libraries end the process with a crash, and a radio that cannot open sockets finds nothing; so whether there are
/// enough is looked at before anything else.
struct DescriptorRoom {
  /// What a run may need: 64 connections of a simulated air with three descriptors each, files, and what libraries keep.
  static let least = 224
  /// Up to which a limit is raised.
  static let comfortable: rlim_t = 1024

  /// Numbers below the limit that are not in use, counted up to ``least``.
  let free: Int
  /// The limit, after it was raised.
  let limit: UInt64

  /// Raises the limit of this process where that is permitted, and counts. Opens nothing.
  static func ofProcess() -> DescriptorRoom {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard unsafe getrlimit(resource, &limit) == 0 else { return DescriptorRoom(free: least, limit: 0) }
    let wanted = min(limit.rlim_max, comfortable)
    if limit.rlim_cur < wanted {
      var raised = limit
      raised.rlim_cur = wanted
      if unsafe setrlimit(resource, &raised) == 0 { limit = raised }
    }
    var free = 0
    var number: rlim_t = 0
    while free < least, number < limit.rlim_cur {
      if fcntl(Int32(clamping: number), F_GETFD) < 0 { free += 1 }
      number += 1
    }
    return DescriptorRoom(free: free, limit: UInt64(limit.rlim_cur))
  }

  /// Why a run cannot begin; nil: it can.
  var failure: Failure? {
    guard free < Self.least else { return nil }
    return Failure(
      code: "too-few-open-files",
      message:
        "this process may open \(free) more files (the limit is \(limit)), and may need \(Self.least)",
      advice: "raise the limit: ulimit -n 1024", exitCode: .localStorage)
  }
}
