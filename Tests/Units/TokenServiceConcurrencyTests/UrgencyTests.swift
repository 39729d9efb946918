import Testing
import TokenServiceConcurrency

@Suite struct UrgencyTests {
    @Test func `the lowest urgency is the library's own background priority`() {
        #expect(Urgency.background == Urgency(TaskPriority.background))
        #expect(Urgency.background < Urgency(.low))
    }
}
