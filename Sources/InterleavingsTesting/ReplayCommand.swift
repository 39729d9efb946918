import Interleavings
import Testing

/// The command that runs one test again, as a shell takes it.
struct ReplayCommand {
    private let test: Test

    init(_ test: Test) {
        self.test = test
    }

    /// The command, to be put after the variables that select the schedule to replay.
    var text: String {
        #if DEBUG
        let configuration = ""
        #else
        let configuration = "-c release "
        #endif
        return "swift test \(configuration)--filter \(Self.quoted(filter))"
    }

    /// A regular expression that matches this test's ID and no other's.
    ///
    /// Swift Testing looks for it in the ID's description: `Module.Suite/function(label:)/File.swift:12:6`, in which raw
    /// identifiers keep their backticks and display names don't appear. The line is left out, since it changes while a test is
    /// edited.
    private var filter: String {
        "^\(Self.escaped(test.path))/"
    }

    private static func escaped(_ text: some StringProtocol) -> String {
        text.reduce(into: "") { $0 += #"\^$.|?*+()[]{}"#.contains($1) ? "\\\($1)" : "\($1)" }
    }

    /// Quotes a text for a shell: between apostrophes only another apostrophe is special.
    private static func quoted(_ text: String) -> String {
        "'\(text.replacing("'", with: #"'\''"#))'"
    }
}

extension Test {
    /// Its ID without the line.
    var path: String {
        let id = "\(id)"
        return isSuite ? id : String(id[..<(id.lastIndex(of: "/") ?? id.endIndex)])
    }

    /// Its path and the arguments of one of its cases, which tell an exploration apart from others.
    ///
    /// The arguments aren't public. Where they can't be read, the cases of a test aren't told apart.
    func place(of testCase: Case?) -> String {
        let arguments = testCase.flatMap { Mirror(reflecting: $0).descendant("_kind", 0, "arguments") as? [Any] } ?? []
        let texts = arguments.map { Mirror(reflecting: $0).descendant("value").map { "\($0)" } ?? "" }
        return texts.isEmpty ? path : "\(path) with \(texts.joined(separator: ", "))"
    }
}
