internal import CLinux
internal import Foundation
internal import Glibc

extension VirtualMachine {
  /// A machine without PCI, firmware and clock emulation that nobody needs, which boots in seconds in emulation.
  func qemuArguments(kernel: URL, archive: URL, output: URL, logs: URL) throws -> [String] {
    let parameters = [
      "console=ttyS0", "quiet", "panic=-1", "reboot=t", "pci=off", "nokaslr", "mitigations=off", "audit=0",
      "apparmor=0",
      "no_timer_check", "tsc=reliable", "tsc_early_khz=\(try TimeStampCounter.kilohertz())",
      "cryptomgr.notests=1",
      "random.trust_cpu=on",
    ]
    // Without arat the kernel has no timers of a fine resolution, and those of Foundation's run loops never fire then: it takes the resolution of
    // CLOCK_MONOTONIC for the unit of its own clock.
    var arguments = [
      "-machine", "microvm,rtc=on,pit=on,pic=on", "-accel", "tcg,thread=multi,tb-size=256",
      "-cpu", "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+rdrand,+aes,+arat",
      "-smp", "\(processors)", "-m", "\(memoryMegabytes)",
      "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
      "-kernel", kernel.path, "-initrd", archive.path, "-append", parameters.joined(separator: " "),
      "-chardev", "file,id=console,path=\(logs.path.escapedComma)/console.log", "-serial", "chardev:console",
      "-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
      "-device", "virtio-9p-device,fsdev=root,mount_tag=root",
      "-fsdev", "local,id=out,path=\(output.path.escapedComma),security_model=none,multidevs=remap",
      "-device", "virtio-9p-device,fsdev=out,mount_tag=out",
      "-object", "rng-random,id=random,filename=/dev/urandom", "-device", "virtio-rng-device,rng=random",
      "-device", "virtio-serial-device",
    ]
    // What Attempt hands over: the control lines, and the two streams of the command.
    for port in 1...3 {
      arguments += [
        "-add-fd", "fd=\(2 + port),set=\(port)",
        "-chardev", "file,id=port\(port),path=/dev/fdset/\(port),append=on",
        "-device", "virtserialport,chardev=port\(port),nr=\(port),name=real-stack.\(port)",
      ]
    }
    return arguments
  }
}

/// The guest's counter of cycles is the host's, and its own measuring of the rate, against an emulated timer, ends in no result in one boot of
/// some: then it hangs. So it is told.
enum TimeStampCounter {
  static func kilohertz() throws -> UInt64 {
    var results: [UInt64] = []
    for _ in 0..<3 {
      let first = sample()
      var last = first
      while last.nanoseconds &- first.nanoseconds < 15_000_000 { last = sample() }
      let ticks = (last.ticks &- first.ticks).multipliedReportingOverflow(by: 1_000_000)
      guard !ticks.overflow else { continue }
      results.append(ticks.partialValue / (last.nanoseconds - first.nanoseconds))
    }
    results.sort()
    guard !results.isEmpty, results[results.count / 2] > 0 else {
      throw VirtualMachine.Failure.unsupported("this processor has no time stamp counter that runs evenly")
    }
    return results[results.count / 2]
  }

  /// Both clocks at one moment: where something came between two looks at the one, the look at the other is repeated.
  private static func sample() -> (nanoseconds: UInt64, ticks: UInt64) {
    var best: (nanoseconds: UInt64, ticks: UInt64) = (0, 0)
    var gap = UInt64.max
    for _ in 0..<8 {
      let before = nanoseconds()
      let ticks = clinux_time_stamp_counter()
      let after = nanoseconds()
      if after - before < gap { (best, gap) = ((before, ticks), after - before) }
    }
    return best
  }

  private static func nanoseconds() -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

extension String {
  /// QEMU's options are separated by commas; one in a path is written twice.
  fileprivate var escapedComma: String { replacing(",", with: ",,") }
}
