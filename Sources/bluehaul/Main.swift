import BluehaulTool
import Dispatch
import Foundation

@main
enum Main {
  // No asynchronous function: what runs those needs descriptors, and whether there are any is looked at first.
  static func main() {
    // A reader that goes away is seen as EPIPE by the sink that writes.
    signal(SIGPIPE, SIG_IGN)
    Interrupts.endAtOnceOnQuit()
    let arguments = Array(CommandLine.arguments.dropFirst())
    let environment = ToolEnvironment.process()
    if let code = Bluehaul.refuseTooFewDescriptors(arguments, in: environment) { exit(code.rawValue) }
    let interrupts = Interrupts.ofProcess()
    Task {
      exit(await Bluehaul.run(arguments, in: environment, interrupts: interrupts).rawValue)
    }
    dispatchMain()
  }
}
