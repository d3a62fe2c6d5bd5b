import CoreBluetooth

// Lines leave at once, also into a pipe.
setvbuf(stdout, nil, _IOLBF, 0)

switch CommandLine.arguments.dropFirst().first {
case "device": Device.shared.start()
case "phone": Phone.shared.start()
default:
  print("usage: swift5-program device|phone")
  exit(2)
}
RunLoop.main.run()
