internal import Dispatch
internal import Radio

/// What a manager is made with, read from its queue and options.
struct ManagerSettings<Saved: SavedContents>: Sendable {
  let radio: any Radio
  /// Where the delegate is called.
  let queue: DispatchQueue
  let log: CBLogHandler
  /// nil: nothing is saved.
  let recorder: RestorationRecorder<Saved>?

  init(queue: DispatchQueue?, options: [String: Any]?) {
    self.queue = queue ?? .main
    log = options?[CBManagerOptionLogHandlerKey] as? CBLogHandler ?? .standardError
    radio = RadioSelection.radio(for: options?[CBManagerOptionRadioKey], log: log)
    recorder = RestorationRecorder.make(options, log: log)
  }
}
