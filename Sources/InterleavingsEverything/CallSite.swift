import RuntimeDoors

#if os(Linux) && canImport(Runtime)
import Runtime
#endif

/// Names the function that leaves a simulation, for reports.
enum CallSite {
    /// Finds the innermost Swift function outside the explorer and the standard library, such as `closure #1 in Cache.load()`.
    ///
    /// Records the calls at once, and names the function on demand; `nil` if none can be named, as in a stripped program.
    static func capture() -> (@Sendable () -> String?)? {
        var calls = [UInt](repeating: 0, count: 64)
        let count = unsafe calls.withUnsafeMutableBufferPointer { calls in
            unsafe calls.baseAddress.map { unsafe doors_calls($0, Int32(calls.count)) } ?? 0
        }
        guard count > 0 else { return nil }
        return { [calls] in
            calls.prefix(Int(count)).lazy.compactMap { call in
                name(of: call).map { name in "\(name)\(CodeLine.find(call - 1).map { " at \($0)" } ?? "")" }
            }.first
        }
    }

    /// Names the function that made a call; `nil` if it is unknown or not part of the program.
    static func name(of call: UInt) -> String? {
        unsafe doors_caller_name(call).flatMap { unsafe readable(String(cString: $0)) }
    }

    /// Returns a function's name for a report; `nil` if it isn't part of the program.
    static func readable(_ name: String) -> String? {
        guard name.hasPrefix("$s"), !others.contains(where: name.hasPrefix), !name.contains(testMacro) else { return nil }
        #if os(Linux) && canImport(Runtime)
        let symbol = SymbolicatedBacktrace.Symbol(imageIndex: 0, imageName: "", rawName: name, offset: 0, sourceLocation: nil)
        // The runtime doesn't recognize a thunk that the optimizer has specialized.
        let isThunk = symbol.isSwiftThunk || symbol.name.hasPrefix("specialized thunk for ")
        guard !isThunk, !symbol.isSystemFunction else { return nil }
        // The function around a closure of top-level code has no name.
        return symbol.name.hasSuffix(" in ") ? symbol.name + "top-level code" : symbol.name
        #else
        return name
        #endif
    }

    /// In the names of what `@Test` adds to a test.
    private static let testMacro = "4TestfMp_"

    /// The prefixes of names that aren't the program's: a module's name follows its length, and `$sS` is a standard type.
    private static let others = [
        "$s13Interleavings", "$s20InterleavingsTesting", "$s23InterleavingsEverything",
        "$s23TokenServiceConcurrency", "$ss", "$sS", "$s8Dispatch", "$s10Foundation", "$s7Testing",
    ]
}
