import ChildProcess
import Foundation
import TestSupport
import Testing

@testable import BluehaulTool

extension WholeRuns {
  @Suite struct ProcessTests {
    @Test(
      "exit codes leave the process",
      arguments: [(["--version"], 0), (["help", "exit-codes"], 0), (["nonsense"], 2), ([], 2)]
        as [([String], Int32)])
    func exitCodes(arguments: [String], status: Int32) async throws {
      let tool = try ToolProcess(arguments)
      _ = await tool.allLines()
      #expect(await tool.ending() == .exit(status))
      #expect(tool.errors().isEmpty == (status == 0))
    }

    @Test func aReaderThatHasGoneIsNoError() async throws {
      let pipe = Pipe()
      try pipe.fileHandleForReading.close()
      let tool = try ToolProcess(["help"], output: pipe.fileHandleForWriting)
      #expect(await tool.ending() == .exit(0))
      #expect(tool.errors() == "")
    }

    /// The tool, started by a shell that has limited what it may open or dump.
    private func limited(_ limit: String, _ arguments: [String]) throws -> ToolProcess {
      let tool = ChildProcess.products.appending(path: "bluehaul").path
      return try ToolProcess("/bin/sh", ["-c", "\(limit) && exec \"$0\" \"$@\"", tool] + arguments)
    }

    @Test("where too few files may be opened, one sentence says so", arguments: [8, 9, 16, 64, 200])
    func tooFewDescriptors(count: Int) async throws {
      for arguments in [["doctor"], ["demo"], ["scan", "--radio", "virtual:/nowhere/at/all"]] {
        let tool = try limited("ulimit -c 0 && ulimit -n \(count)", arguments)
        _ = await tool.allLines()
        #expect(await tool.ending() == .exit(9))
        let lines = tool.errors().split(separator: "\n")
        #expect(lines.count == 2 && lines.first?.contains("the limit is \(count)") == true, "\(lines)")
      }
    }

    @Test func aLimitThatMayBeRaisedIsNone() async throws {
      let tool = try limited("ulimit -S -n 16", ["demo", "--clock", "lockstep"])
      _ = await tool.allLines()
      #expect(await tool.ending() == .exit(0), "\(tool.errors())")
    }

    @Test func quittingEndsTheProcessAtOnceAndSilently() async throws {
      let folder = TemporaryFolder()
      let tool = try limited(
        "ulimit -c 0",
        [
          "receive", "--json", "--name", "x", "--into", folder.path("in"), "--radio",
          "virtual:\(folder.path("air"))",
        ])
      #expect(await tool.line { $0.contains("\"ready\"") } != nil)
      tool.send(signal: SIGQUIT)
      #expect(await tool.ending() == .signal(SIGQUIT))
      #expect(tool.errors() == "")
    }

    @Test func quittingIsIgnoredWhereItWasIgnoredBefore() async throws {
      let folder = TemporaryFolder()
      let tool = try limited(
        "trap '' QUIT",
        [
          "receive", "--json", "--name", "x", "--into", folder.path("in"), "--radio",
          "virtual:\(folder.path("air"))",
        ])
      #expect(await tool.line { $0.contains("\"ready\"") } != nil)
      tool.send(signal: SIGQUIT)
      tool.send(signal: SIGTERM)
      #expect(await tool.ending() == .exit(130))
    }

    @Test func aHangUpIsIgnoredWhereItWasIgnoredBefore() async throws {
      let folder = TemporaryFolder()
      let file = try folder.write(Data(0..<100), "fw.bin")
      let radio = ["--radio", "virtual:\(folder.path("air"))"]
      let receiver = try limited(
        "trap '' HUP", ["receive", "--json", "--once", "--name", "x", "--into", folder.path("in")] + radio)
      #expect(await receiver.line { $0.contains("\"ready\"") } != nil)
      receiver.send(signal: SIGHUP)
      let push = try ToolProcess(
        ["push", file, "--to", "x"] + radio, environment: ["XDG_STATE_HOME": folder.path("state")])
      #expect(await push.ending() == .exit(0), "\(push.errors())")
      #expect(await receiver.ending() == .exit(0), "\(receiver.errors())")
    }

    @Test func outputThatCannotBeWrittenIsAnError() async throws {
      let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
      let tool = try ToolProcess(["help"], output: full)
      #expect(await tool.ending() == .exit(9))
      #expect(tool.errors() == "bluehaul: cannot write the output: No space left on device\n")
    }
  }
}
