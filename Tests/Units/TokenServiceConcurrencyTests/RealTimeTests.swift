import TestBudgets
import Testing

@Suite(.inRealTime)
struct RealTimeTests {
    @Test func `a test in real time and the tasks that it starts go ahead of those that compute`() async {
        #expect(Task.currentPriority == .high)
        #expect(await Task { Task.currentPriority }.value == .high)
    }
}
