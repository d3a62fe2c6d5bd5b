import Dispatch

/// Runs tasks on a dispatch queue, so that simulated time can wait for them.
final class QueueExecutor: TaskExecutor {
  let queue = DispatchQueue(label: "tasks")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
