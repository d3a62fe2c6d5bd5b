import ChildProcess
import Foundation
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

    @Test func outputThatCannotBeWrittenIsAnError() async throws {
      let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
      let tool = try ToolProcess(["help"], output: full)
      #expect(await tool.ending() == .exit(9))
      #expect(tool.errors() == "bluehaul: cannot write the output: No space left on device\n")
    }
  }
}
