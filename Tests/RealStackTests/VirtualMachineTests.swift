import ChildProcess
import Foundation
import Locking
import RealStack
import Testing

/// What the machine promises to who runs a command in it. Boots take long, so a test asks several questions of one.
extension OnARealStack {
  @Suite("Virtual machine", .serialized) struct VirtualMachineTests {
    @Test(
      "a command has its folder, its environment, both streams, its status, two powered adapters and /out")
    func command() async throws {
      let folder = try TemporaryFolder()
      var machine = VirtualMachine()
      machine.folder = folder.url.path
      machine.outputFolder = folder.url.appending(path: "came back")
      machine.environment = ["WORDS": "it's \"$HOME\""]
      try Data("from here\n".utf8).write(to: folder.url.appending(path: "file"))
      let said = Said()
      let script = """
        cat file; printf '%s\\n' "$WORDS" "$1" "$BLUEHAUL_REAL_STACK" "$(id -u)"
        bluetoothctl list; stack wait-powered 2 5 && echo powered
        echo lost >file; echo kept >/out/result; echo complaint >&2; exit 7
        """
      let report = try await machine.run(["sh", "-c", script, "sh", "a 'b' c"], sink: said.add)
      #expect(report.status == 7)
      #expect(
        said.lines(.output) == [
          "from here", "it's \"$HOME\"", "a 'b' c", "1", "0",
          "Controller \(Guest.address(of: 0)) BlueZ [default]",
          "Controller \(Guest.address(of: 1)) BlueZ", "powered",
        ])
      #expect(said.lines(.errors) == ["complaint"])
      #expect(try String(contentsOf: folder.url.appending(path: "file"), encoding: .utf8) == "from here\n")
      #expect(
        try String(contentsOf: folder.url.appending(path: "came back/result"), encoding: .utf8) == "kept\n")
      #expect(report.phases.map(\.name) == ["boot", "daemons", "ready", "done"])
      #expect(
        FileManager.default.fileExists(
          atPath: folder.url.appending(path: "came back/.real-stack/dmesg.log").path))
    }

    @Test("a command that takes too long ends with an error of its own, and with the logs")
    func timeLimit() async throws {
      var machine = VirtualMachine()
      machine.controllers = 0
      machine.timeLimit = .seconds(1)
      do {
        _ = try await machine.run(["sleep", "3600"]) { _, _ in }
        Issue.record("ended without an error")
      } catch let failure as VirtualMachine.Failure {
        #expect(failure.exitStatus == 124)
        #expect(failure.logs?.ends.contains { $0.name == "dmesg" } == true)
      }
    }

    @Test("boots that fail are tried again, and each reason is kept")
    func failedBoots() async throws {
      var machine = VirtualMachine()
      machine.bootLimit = .milliseconds(200)
      let noted = Said()
      do {
        _ = try await machine.run(["true"], note: { noted.add(.errors, Data("\($0)\n".utf8)) }) { _, _ in }
        Issue.record("booted in 200 ms")
      } catch let failure as VirtualMachine.Failure {
        guard case .boot(let reasons, _) = failure else { throw failure }
        #expect(reasons.count == VirtualMachine.bootAttempts)
        #expect(reasons.allSatisfy { $0.contains("no stack within") })
        #expect(failure.exitStatus == 125)
      }
      #expect(noted.lines(.errors).count { $0.hasPrefix("attempt") } == VirtualMachine.bootAttempts)
    }

    @Test("a process that is killed leaves no machine behind")
    func killedParent() async throws {
      let tool = try ChildProcess("real-stack", ["--", "sh", "-c", "echo started; sleep 3600"])
      #expect(await tool.line { $0 == "started" } != nil)
      let machines = Self.children(of: tool.pid)
      #expect(machines.count == 1)
      tool.send(signal: SIGKILL)
      #expect(await tool.ending() == .signal(SIGKILL))
      // Killed by the kernel, at once; but somebody has to be scheduled to do it.
      for machine in machines { try await Self.waitForEnd(of: machine) }
    }

    @Test("a task that is cancelled ends its machine")
    func cancelled() async throws {
      let said = Said()
      let (started, start) = AsyncStream.makeStream(of: Void.self)
      let task = Task {
        defer { start.finish() }
        return try await VirtualMachine().run(["sh", "-c", "echo started; sleep 3600"]) { stream, data in
          said.add(stream, data)
          if said.lines(.output).contains("started") { start.finish() }
        }
      }
      for await _ in started {}
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }

    private static func children(of parent: pid_t) -> [pid_t] {
      let path = "/proc/\(parent)/task"
      let threads = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
      return threads.flatMap { thread in
        let text = (try? String(contentsOfFile: "\(path)/\(thread)/children", encoding: .utf8)) ?? ""
        return text.split(separator: " ").compactMap { pid_t($0) }
      }
    }

    /// A process that has ended has no program, also where nobody has asked how it ended.
    private static func waitForEnd(of process: pid_t) async throws {
      let script = "while [ -e /proc/$1/exe ]; do sleep 0.05; done"
      try await Command("sh", ["-c", script, "sh", "\(process)"]).run(limit: .seconds(120))
    }
  }
}

/// What came, stream by stream.
private final class Said: Sendable {
  private let bytes = PosixMutex<[VirtualMachine.Stream: Data]>([:])

  func add(_ stream: VirtualMachine.Stream, _ data: Data) {
    bytes.withLock { $0[stream, default: Data()] += data }
  }

  /// Without versions of programs, and without spaces at their ends.
  func lines(_ stream: VirtualMachine.Stream) -> [String] {
    String(decoding: bytes.withLock { $0[stream] ?? Data() }, as: UTF8.self)
      .replacing(#/ \d+\.\d+/#, with: "").split(separator: "\n")
      .map { $0.trimmingCharacters(in: .whitespaces) }
  }
}
