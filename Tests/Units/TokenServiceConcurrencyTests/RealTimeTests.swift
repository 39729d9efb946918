import TestBudgets
import Testing

@Suite(.inRealTime)
struct RealTimeTests {
    @Test func `a test in real time and the tasks that it starts have high priority`() async {
        #expect(Task.currentPriority == .high)
        #expect(await Task { Task.currentPriority }.value == .high)
    }
}
