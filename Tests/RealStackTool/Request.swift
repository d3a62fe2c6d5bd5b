internal import Foundation
internal import RealStack

/// What the command line asks for.
struct Request {
  static let usage = """
    usage: real-stack [OPTION...] -- COMMAND [ARGUMENT...]
           real-stack [OPTION...] --tests FILTER

    Runs a command as root in a virtual machine with Bluetooth, in this folder, over this machine's files (what it changes is lost).
    With --tests: the tests of this package whose names match FILTER, as they were built last (swift build --build-tests).

      --controllers N   controllers on one air (2)
      --timeout S       seconds for the command (300); exit status 124 when they are over
      --out DIR         the folder that is /out in the guest; logs are in DIR/.real-stack
      --snoop           record the traffic into DIR/.real-stack/btsnoop, for btmon and Wireshark
      --env NAME=VALUE  for the command; may be repeated
      --memory MIB      of the guest (1536)
      --debug           bluetoothd logs all it does
      --experimental    bluetoothd has its experimental interfaces
      --time            say when each phase was reached
    """

  struct Mistake: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  var machine = VirtualMachine()
  var command: [String] = []
  var showsTimes = false

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    var filter: String?
    while let option = rest.popFirst() {
      if option == "--" {
        command = Array(rest)
        break
      }
      switch option {
      case "--snoop": machine.recordsTraffic = true
      case "--debug": machine.verboseDaemon = true
      case "--experimental": machine.experimental = true
      case "--time": showsTimes = true
      case "--controllers": machine.controllers = try Self.number(option, &rest, in: 0...16)
      case "--memory": machine.memoryMegabytes = try Self.number(option, &rest, in: 512...65536)
      case "--timeout": machine.timeLimit = .seconds(try Self.number(option, &rest, in: 1...86400))
      case "--out": machine.outputFolder = URL(filePath: try Self.value(option, &rest)).absoluteURL
      case "--tests": filter = try Self.value(option, &rest)
      case "--env":
        let parts = try Self.value(option, &rest).split(
          separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw Mistake("--env wants NAME=VALUE") }
        machine.environment[String(parts[0])] = String(parts[1])
      default: throw Mistake("\(option) is not an option")
      }
    }
    if let filter {
      guard command.isEmpty else { throw Mistake("--tests and a command exclude each other") }
      command = GuestTestBundle().command(filters: [filter])
    }
    guard !command.isEmpty else { throw Mistake("no command") }
    if machine.recordsTraffic, machine.outputFolder == nil { throw Mistake("--snoop needs --out") }
  }

  private static func value(_ option: String, _ rest: inout ArraySlice<String>) throws -> String {
    guard let value = rest.popFirst() else { throw Mistake("\(option) wants a value") }
    return value
  }

  private static func number(
    _ option: String, _ rest: inout ArraySlice<String>, in range: ClosedRange<Int>
  ) throws -> Int {
    let value = try value(option, &rest)
    guard let number = Int(value), range.contains(number) else {
      throw Mistake("\(option) wants a number from \(range.lowerBound) to \(range.upperBound), not \(value)")
    }
    return number
  }
}
