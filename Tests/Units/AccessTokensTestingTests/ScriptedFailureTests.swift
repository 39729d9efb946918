import AccessTokens
import AccessTokensTesting
import Testing

@Suite("A scripted failure")
struct ScriptedFailureTests {
    @Test(arguments: [
        (ScriptedFailure(), "temporarily unavailable"), (ScriptedFailure(.signIn), "invalid_grant"),
        (ScriptedFailure(.clientRegistration), "invalid_client"), (ScriptedFailure(.programChange), "scripted failure"),
        (ScriptedFailure(.signIn, message: "mine"), "mine"),
    ])
    func `has the message of its remedy, unless the test gives one`(failure: ScriptedFailure, message: String) {
        #expect(failure.logCode == message)
        #expect("\(failure)" == message)
    }
}
