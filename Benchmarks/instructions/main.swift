import OneThread
import Synchronization

// Usage: instructions NAME COUNT
let arguments = CommandLine.arguments.dropFirst()
guard arguments.count == 2, let workload = Workload.all.first(where: { $0.name == arguments.first }),
    let count = arguments.last.flatMap({ Int($0) }), count > 0
else {
    print("Usage: instructions NAME COUNT, where NAME is one of: " + Workload.all.map(\.name).joined(separator: ", "))
    throw CancellationError()
}

// On one thread: with several, the order in which they sleep and wake is another in each run, and what they execute with it.
if let missing = unsafe one_thread_begin() {
    unsafe print("The runtime has no \(String(cString: missing)).")
    throw CancellationError()
}
let isDone = Atomic(false)
Task.detached {
    do {
        try await workload.run(count)
        isDone.store(true, ordering: .relaxed)
    } catch { print(error) }
}
one_thread_run()
guard isDone.load(ordering: .relaxed) else {
    print("\(workload.name) has failed, or waits for what never comes.")
    throw CancellationError()
}
