import BluehaulTool
import Foundation

@main
enum Main {
  static func main() async {
    // A reader that goes away is seen as EPIPE by the sink that writes.
    signal(SIGPIPE, SIG_IGN)
    let interrupts = Interrupts.ofProcess()
    let code = await Bluehaul.run(
      Array(CommandLine.arguments.dropFirst()), in: .process(), interrupts: interrupts)
    exit(code.rawValue)
  }
}
