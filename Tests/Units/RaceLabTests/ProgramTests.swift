import ChildProcesses
import Foundation
import TestBudgets
import Testing

@testable import race_lab

/// The programs, started by a shell.
@Suite struct `The programs` {
    /// Runs a line of a shell in which `$0` is the program; returns its status and what it wrote to standard error.
    private func run(_ line: String, _ program: String) async throws -> (status: Int32, notes: String) {
        try await withCheckedThrowingContinuation { continuation in
            // On its own thread: reading blocks, and the pool has few threads.
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        let process = try ChildProcess(
                            URL(filePath: "/bin/sh"), ["-c", line, ChildProcess.program(program).path],
                            connecting: .error)
                        let text = String(decoding: process[.error].readDataToEndOfFile(), as: UTF8.self)
                        return (process.waitUntilExit(), text)
                    })
            }
        }
    }

    #if os(Linux)
    @Test(arguments: ["race-lab", "movie-screens"])
    func `race-lab and movie-screens fail when nothing can be written`(_ program: String) async throws {
        for file in ["> /dev/full", ">&-"] {
            let (status, notes) = try await run(#""$0" --help \#(file)"#, program)
            #expect(status == 1)
            #expect(notes.hasPrefix("\(program): standard output is full or closed"), "\(notes)")
            #expect(notes.tooLong == [])
        }
    }
    #endif

    @Test(arguments: ["race-lab", "movie-screens"])
    func `race-lab and movie-screens have a help of 80 columns, and repeat no unknown argument`(_ program: String)
        async throws
    {
        let help = try await run(#""$0" --help >&2"#, program)
        #expect(help.status == 0)
        #expect(help.notes.hasPrefix("\(program) ") && help.notes.tooLong == [], "\(help.notes)")
        let stray = try await run(#""$0" hunter2"#, program)
        #expect(stray.status == 64)
        #expect(stray.notes.hasPrefix("\(program): ") && !stray.notes.contains("hunter2"), "\(stray.notes)")
        #expect(stray.notes.tooLong == [])
    }

    @Test(arguments: ["--museum --json", "--museum --callers 3"])
    func `race-lab ends with status 64 and a sentence where options don't go together`(_ options: String) async throws {
        let (status, notes) = try await run(#""$0" \#(options)"#, "race-lab")
        #expect(status == 64 && notes.hasPrefix("race-lab: --") && notes.tooLong == [], "\(notes)")
        #expect(notes.replacing("\n  ", with: " ").hasSuffix("(--help shows all options)\n"), "\(notes)")
    }

    @Test func `race-lab says where a page is, and fails after its output if none can be written`() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "page-\(UUID()).html")
        defer { try? FileManager.default.removeItem(at: file) }
        let line = #""$0" --show "stage 2" --page "#
        let written = try await run("\(line)'\(file.path)' >&2", "race-lab")
        #expect(written.status == 0 && written.notes.hasSuffix("\nA page to walk through: \(file.path)\n"), "\(written.notes)")
        #expect(try String(contentsOf: file, encoding: .utf8).hasPrefix("<!doctype html>"))
        let refused = try await run("\(line)'\(file.path)/page' >&2", "race-lab")
        #expect(refused.status == 1 && refused.notes.hasPrefix("stage 2 fails in "), "\(refused.notes)")
        let reason = try #require(refused.notes.firstRange(of: "\nrace-lab: ")).upperBound
        #expect(
            refused.notes[reason...].replacing("\n  ", with: " ")
                == "the page can't be written to '\(file.path)/page': No such file or directory\n")
    }

    // CI also runs the whole lab.
    @Test(.thorough) func `race-lab writes no control characters into a pipe, and no line longer than 80 columns`() async throws {
        let (status, text) = try await run(#""$0" --callers 2 >&2"#, "race-lab")
        #expect(status == 0 && text.hasPrefix("2 callers need an access token at once."))
        #expect(text.tooLong == [])
        #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || $0.properties.generalCategory != .control })
    }

    @Test func `race-lab prints an error in lines of its own, whatever lines the error has`() {
        let note = RaceLab.note(of: "The server said:\n" + String(repeating: "something ", count: 30))
        #expect(note.hasPrefix("race-lab: The server said: something something"))
        #expect(note.tooLong == [])
    }
}
