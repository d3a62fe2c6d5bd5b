internal import BulkTransfer

extension ToolEnvironment {
  /// The folder of journals and known devices: `$XDG_STATE_HOME/bluehaul`, or `~/.local/state/bluehaul` (XDG Base Directory Specification).
  func stateDirectory() throws(TransferError) -> String {
    if let base = variables["XDG_STATE_HOME"], base.hasPrefix("/") { return "\(base)/bluehaul" }
    if let home = variables["HOME"], home.hasPrefix("/") { return "\(home)/.local/state/bluehaul" }
    throw TransferError(
      .storage, "there is no folder for journals: neither XDG_STATE_HOME nor HOME is an absolute path",
      advice: "set XDG_STATE_HOME")
  }
}
