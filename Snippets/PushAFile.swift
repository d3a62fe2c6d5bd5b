import BulkTransfer

let image = try ImageFile(path: "firmware.bin")
let plan = try PushPlan(TransferManifest(objects: [image.describe()]))
let push = try PushOperation(plan.objects(), transferID: plan.manifest.transferID, to: .name("bench-1"))
let listener = Task {
  for await case .progress(let state) in push.events {
    print(state.phase, state.confirmedBytes, "of", state.totalBytes)
  }
}
let report = try await push.run()
await listener.value
print("verified by the device:", report.progress.averageBytesPerSecond ?? 0, "bytes per second")
