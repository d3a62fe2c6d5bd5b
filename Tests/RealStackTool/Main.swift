internal import Dispatch
internal import Foundation
internal import RealStack

/// Runs a command in the virtual machine, for people.
@main struct RealStackTool {
  static func main() async {
    // A reader of our output that went away shows as an error of write(2).
    signal(SIGPIPE, SIG_IGN)
    let request: Request
    do {
      request = try Request(Array(CommandLine.arguments.dropFirst()))
    } catch {
      complain("\(error)\n\(Request.usage)")
      exit(125)
    }
    let task = Task { await run(request) }
    let signals = [SIGINT, SIGTERM, SIGHUP].map { number in
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { task.cancel() }
      source.resume()
      return source
    }
    let status = await task.value
    withExtendedLifetime(signals) {}
    exit(status)
  }

  private static func run(_ request: Request) async -> Int32 {
    do {
      let report = try await request.machine.run(request.command, note: { complain($0) }) { stream, data in
        try? (stream == .output ? FileHandle.standardOutput : .standardError).write(contentsOf: data)
      }
      if request.showsTimes { complain(report.phases.map { "\($0)" }.joined(separator: ", ")) }
      return report.status
    } catch let failure as VirtualMachine.Failure {
      complain("\(failure)")
      if let logs = failure.logs { complain("\(logs)") }
      return failure.exitStatus
    } catch is CancellationError {
      return 130
    } catch {
      complain("\(error)")
      return 125
    }
  }

  private static func complain(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data("real-stack: \(text)\n".utf8))
  }
}
