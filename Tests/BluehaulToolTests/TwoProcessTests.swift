import ChildProcess
import Foundation
import TestSupport
import Testing

@testable import BluehaulTool

extension WholeRuns {
  /// A sender and a receiver as processes that meet in a folder, and what killing them does.
  @Suite struct TwoProcessTests {
    /// The folder for everything of one test.
    private final class Place: Sendable {
      private let folder = TemporaryFolder()
      let image: Data

      init(size: Int = 300_000) throws {
        image = Data(try SampleImage.data(size: size).dropFirst(512))
        try folder.write(image, "fw.bin")
      }

      var path: String { folder.path }

      func receiver(_ options: String...) async throws -> ToolProcess {
        let tool = try ToolProcess(
          [
            "receive", "--json", "--radio", "virtual:\(path)/air", "--name", "bench-1", "--into",
            "\(path)/in",
          ]
            + options)
        #expect(await tool.line { $0.contains("\"ready\"") } != nil, "\(tool.errors())")
        return tool
      }

      func sender(_ arguments: String...) throws -> ToolProcess {
        try ToolProcess(
          arguments + ["--json", "--radio", "virtual:\(path)/air"],
          environment: ["XDG_STATE_HOME": "\(path)/state"])
      }

      func push() throws -> ToolProcess { try sender("push", "\(path)/fw.bin", "--to", "bench-1") }

      /// A push that takes three quarters of a minute: whatever is done to it in its first seconds is done in its course, also where processes run slowly.
      func slowPush() throws -> ToolProcess {
        try sender(
          "push", "\(path)/fw.bin", "--to", "bench-1", "--compress", "never", "--link", "dle=27,packets=8")
      }

      var received: Data? { try? Data(contentsOf: URL(filePath: "\(path)/in/fw.bin")) }
    }

    /// What was told on the way to a part of a transfer.
    private struct Course {
      var lines: [String] = []
      /// How many bytes were confirmed last, and from where the transfer went on.
      var confirmed = 0
      var resumedFrom: Int?
    }

    /// Reads until a transfer has come to `percent`, or has ended.
    private func course(_ tool: ToolProcess, to percent: Int) async -> Course {
      var course = Course()
      _ = await tool.line { line in
        course.lines.append(line)
        guard line.contains("\"event\":\"progress\"") else { return false }
        func number(_ name: String) -> Int? {
          line.components(separatedBy: "\"\(name)\":").dropFirst().first.flatMap {
            Int($0.prefix { $0.isNumber })
          }
        }
        course.confirmed = number("confirmed") ?? 0
        course.resumedFrom = number("resumed_from")
        return (number("percent") ?? 0) >= percent
      }
      return course
    }

    @Test func aFileArrivesWhole() async throws {
      let place = try Place(size: 100_000)
      let receiver = try await place.receiver()
      let push = try place.push()
      _ = await push.allLines()
      #expect(await push.ending() == .exit(0), "\(push.errors())")
      #expect(place.received == place.image)
      receiver.send(signal: SIGINT)
      #expect(await receiver.ending() == .exit(130))
    }

    @Test func aKilledSenderGoesOnWhereTheReceiverStands() async throws {
      let place = try Place()
      let receiver = try await place.receiver()
      let killed = try place.slowPush()
      let confirmed = await course(killed, to: 3).confirmed
      killed.send(signal: SIGKILL)
      #expect(await killed.ending() == .signal(SIGKILL))
      #expect(place.received == nil)
      let resume = try place.sender("resume")
      let from = await course(resume, to: 99).resumedFrom
      #expect(await resume.ending() == .exit(0), "\(resume.errors())")
      #expect(confirmed > 0 && from.map { $0 >= confirmed } == true, "\(confirmed), \(from ?? -1)")
      #expect(place.received == place.image)
      receiver.send(signal: SIGTERM)
      #expect(await receiver.ending() == .exit(130))
    }

    @Test func aKilledReceiverGoesOnWithWhatItHadStored() async throws {
      let place = try Place()
      // More than half a minute remains of the push when its receiver is killed.
      let killed = try await place.receiver("--link", "phy=S8")
      let push = try place.sender("push", "\(place.path)/fw.bin", "--to", "bench-1", "--compress", "never")
      _ = await course(push, to: 3)
      killed.send(signal: SIGKILL)
      #expect(await killed.ending() == .signal(SIGKILL))
      #expect(place.received == nil)
      // The same push finds the receiver again; what a dead process left in the air does no harm.
      let receiver = try await place.receiver("--once")
      _ = await push.allLines()
      let ending = await push.ending()
      #expect(ending == .exit(0), "\(push.errors())")
      // Its one sender will not come.
      if ending != .exit(0) { receiver.send(signal: SIGKILL) }
      let lines = await receiver.allLines()
      #expect(lines.contains { $0.contains("\"event\":\"receiving\"") && !$0.contains("\"from\":0}") })
      #expect(await receiver.ending() == .exit(0))
      #expect(place.received == place.image)
    }

    /// Does as an interrupted push advises, to its end.
    private func followAdvice(of push: ToolProcess, in place: Place) async throws {
      let errors = push.errors().split(separator: "\n")
      #expect(errors.count == 2)
      let advice = try #require(errors.last)
      #expect(advice.hasPrefix("go on with: bluehaul resume "))
      let resume = try ToolProcess(
        advice.split(separator: " ").dropFirst(4).map(String.init),
        environment: ["XDG_STATE_HOME": "\(place.path)/state"])
      _ = await resume.allLines()
      #expect(await resume.ending() == .exit(0), "\(resume.errors())")
      #expect(place.received == place.image)
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func anInterruptSaysHowToGoOn(signal: Int32) async throws {
      let place = try Place()
      let receiver = try await place.receiver()
      let push = try place.slowPush()
      _ = await course(push, to: 3)
      push.send(signal: signal)
      _ = await push.allLines()
      #expect(await push.ending() == .exit(130))
      try await followAdvice(of: push, in: place)
      receiver.send(signal: SIGINT)
      _ = await receiver.ending()
    }

    @Test func faultsOfEitherSideAreSeen() async throws {
      let place = try Place(size: 200_000)
      let receiver = try await place.receiver("--fault", "hangup@60%")
      for options in [["--fault", "hangup@30%"], []] {
        let push = try ToolProcess(
          [
            "push", "\(place.path)/fw.bin", "--to", "bench-1", "--json", "--radio",
            "virtual:\(place.path)/air",
          ]
            + options, environment: ["XDG_STATE_HOME": "\(place.path)/state"])
        let losses = await push.allLines().count { $0.contains("\"event\":\"link_lost\"") }
        #expect(await push.ending() == .exit(0), "\(push.errors())")
        #expect(losses == 1)
        #expect(place.received == place.image)
        try FileManager.default.removeItem(atPath: "\(place.path)/in/fw.bin")
      }
      receiver.send(signal: SIGINT)
      _ = await receiver.ending()
    }

    @Test func twoReceiversCannotHaveOneName() async throws {
      let place = try Place(size: 1000)
      let receiver = try await place.receiver()
      let second = try ToolProcess([
        "receive", "--radio", "virtual:\(place.path)/air", "--name", "bench-1", "--into",
        "\(place.path)/other",
      ])
      _ = await second.allLines()
      #expect(await second.ending() == .exit(8))
      #expect(second.errors().contains("bench-1"))
      receiver.send(signal: SIGINT)
      _ = await receiver.ending()
    }

    @Test func twoProcessesDoNotEndEachOthersSessions() async throws {
      let place = try Place()
      let receiver = try await place.receiver()
      try place.image.prefix(50_000).write(to: URL(filePath: "\(place.path)/other.bin"))
      let first = try place.slowPush()
      var lines = await course(first, to: 1).lines
      let second = try place.sender("push", "\(place.path)/other.bin", "--to", "bench-1")
      _ = await second.allLines()
      #expect(await second.ending() == .exit(8), "\(second.errors())")
      #expect(second.errors().contains("bench-1") && second.errors().contains("pid"))
      let twin = try place.push()
      _ = await twin.allLines()
      #expect(await twin.ending() == .exit(8), "\(twin.errors())")
      #expect(twin.errors().contains("works on this transfer") && twin.errors().contains("pid"))
      // The first one is at work still, and goes on; the rest of it would take its time.
      lines += await course(first, to: 4).lines
      first.send(signal: SIGINT)
      lines += await first.allLines()
      #expect(await first.ending() == .exit(130), "\(first.errors())")
      #expect(lines.count { $0.contains("\"event\":\"link_lost\"") } == 0)
      // It has ended: the device is free for what it has left, and the second transfer goes on where it was stopped.
      try await followAdvice(of: first, in: place)
      let resume = try place.sender("resume")
      _ = await resume.allLines()
      #expect(await resume.ending() == .exit(0), "\(resume.errors())")
      receiver.send(signal: SIGINT)
      _ = await receiver.ending()
    }

    @Test func whatAReceiverHasRoomForBoundsSegmentsAndFlight() async throws {
      let place = try Place(size: 100_000)
      let receiver = try await place.receiver("--buffer", "8KiB")
      let push = try place.sender(
        "push", "\(place.path)/fw.bin", "--to", "bench-1", "--via", "gatt", "--segment", "64KiB", "--capture",
        "\(place.path)/capture")
      _ = await push.allLines()
      #expect(await push.ending() == .exit(0), "\(push.errors())")
      #expect(place.received == place.image)
      let capture = try Capture(path: "\(place.path)/capture")
      let power = try #require(capture.offer?.segmentPower)
      #expect(power <= 13)
      // Check values of segments are sent but not counted as received.
      #expect(capture.mostInFlight <= 8192 + 4 * (place.image.count >> power + 1))
      receiver.send(signal: SIGINT)
      _ = await receiver.ending()
    }

    @Test func aPipeGetsPlainLines() async throws {
      let place = try Place(size: 100_000)
      let receiver = try await place.receiver()
      let push = try ToolProcess(
        ["push", "\(place.path)/fw.bin", "--to", "bench-1", "--radio", "virtual:\(place.path)/air"],
        environment: ["XDG_STATE_HOME": "\(place.path)/state", "TERM": "xterm"])
      let lines = await push.allLines()
      #expect(await push.ending() == .exit(0))
      #expect(lines.allSatisfy { $0.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control } })
      #expect(lines.count { $0.hasPrefix("100 %") } == 1)
      receiver.send(signal: SIGINT)
      _ = await receiver.ending()
    }
  }
}
