extension CommandDeclaration {
  /// The tree of all commands.
  static let bluehaul = CommandDeclaration(
    name: "bluehaul", summary: "Move firmware images and other bulk files over Bluetooth LE",
    sections: [
      GlobalOptions.section,
      Section(title: "Other options", options: [ArgumentParser.version.declaration]),
    ],
    subcommands: [
      .demo, .scan, .info, .push, .resume, .status, .devices, .receive, .inspect, .manifest, .bench,
      .ceiling, .doctor, .help,
    ])
}
