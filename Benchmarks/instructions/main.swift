import Dispatch

// Usage: instructions NAME COUNT
let arguments = CommandLine.arguments.dropFirst()
guard arguments.count == 2, let workload = Workload.all.first(where: { $0.name == arguments.first }),
    let count = arguments.last.flatMap({ Int($0) }), count > 0
else {
    print("Usage: instructions NAME COUNT, where NAME is one of: " + Workload.all.map(\.name).joined(separator: ", "))
    throw CancellationError()
}

// Not an asynchronous main: valgrind 3.19 can't run what Dispatch does with the main thread then (`sigsuspend`).
let end = DispatchSemaphore(value: 0)
Task.detached {
    do { try await workload.run(count) } catch { print(error) }
    end.signal()
}
end.wait()
