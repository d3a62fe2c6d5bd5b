internal import Foundation

/// The tool: reads a command line, runs its command, tells how it ended.
public enum Bluehaul {
  /// The version of the tool and of the libraries it was built with.
  public static let version = "0.1.0"

  /// Ends a run that would get nowhere for want of descriptors, with words and an exit code; nil: there are enough. Comes before all that opens some.
  public static func refuseTooFewDescriptors(_ arguments: [String], in environment: ToolEnvironment)
    -> ExitCode?
  {
    DescriptorRoom.ofProcess().failure.map {
      end(with: $0, printer: printer(in: environment, json: isJSON(arguments), .normal))
    }
  }

  /// Whether a command line that was not read asks for JSON.
  private static func isJSON(_ arguments: [String]) -> Bool {
    arguments.prefix { $0 != "--" }.contains("--json")
  }

  /// Runs the tool. Never throws: whatever fails becomes words on standard error and an exit code.
  public static func run(
    _ arguments: [String], in environment: ToolEnvironment, interrupts: Interrupts
  ) async -> ExitCode {
    let request: ArgumentParser.Request
    do throws(UsageError) {
      request = try ArgumentParser(root: CommandDeclaration.bluehaul).parse(arguments)
    } catch {
      return end(with: error, printer: printer(in: environment, json: isJSON(arguments), .normal))
    }
    switch request {
    case .help(let path):
      environment.output.write(HelpText(columns: environment.helpColumns).text(for: path))
      return outcome(of: environment)
    case .version:
      environment.output.write("bluehaul \(version)\n")
      return outcome(of: environment)
    case .command(let path, let arguments):
      return await run(path, arguments, in: environment, interrupts)
    }
  }

  private static func run(
    _ path: CommandPath, _ arguments: ParsedArguments, in environment: ToolEnvironment,
    _ interrupts: Interrupts
  ) async -> ExitCode {
    let verbosity: Verbosity =
      arguments[GlobalOptions.quiet] ? .quiet : arguments[GlobalOptions.verbose] ? .verbose : .normal
    let printer = printer(in: environment, json: arguments[GlobalOptions.json], verbosity)
    let invocation = Invocation(arguments: arguments, environment: environment, printer: printer)
    // It begins once an interrupt reaches it.
    let (beginning, begin) = AsyncStream.makeStream(of: Never.self)
    let work = Task {
      for await _ in beginning {}
      try await path.command.run?(invocation)
    }
    interrupts.onFirst { work.cancel() }
    begin.finish()
    switch await work.result {
    case .success:
      printer.finish()
      return outcome(of: environment)
    case .failure(let error): return end(with: error, printer: printer)
    }
  }

  private static func printer(
    in environment: ToolEnvironment, json: Bool, _ verbosity: Verbosity
  ) -> any EventPrinter {
    if json {
      return JSONPrinter(
        output: environment.output, errors: environment.errors, verbosity: verbosity, now: environment.now)
    }
    return TextPrinter(
      output: environment.output, errors: environment.errors,
      style: environment.terminalColumns.map { .terminal(columns: $0) } ?? .plain, verbosity: verbosity,
      now: environment.now)
  }

  private static func end(with error: any Error, printer: any EventPrinter) -> ExitCode {
    let failure = Failure(error)
    printer.show(failure)
    printer.finish()
    return failure.exitCode
  }

  /// Success, unless the output could not be written; a reader that has gone is none of our business.
  private static func outcome(of environment: ToolEnvironment) -> ExitCode {
    guard let error = environment.output.failure else { return .success }
    let reason = unsafe String(cString: strerror(error))
    environment.errors.write("bluehaul: cannot write the output: \(reason)\n")
    return .localStorage
  }
}
