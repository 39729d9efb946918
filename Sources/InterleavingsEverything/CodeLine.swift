#if os(Linux) && canImport(Runtime) && compiler(<6.4)
@_spi(Internal) @_spi(MemoryReaders) import Runtime
import TokenServiceConcurrency

/// Finds the lines of code with the runtime's means for backtraces.
enum CodeLine {
    /// The lines found so far: finding one takes a tenth of a second, and a report is often made more than once.
    private static let known = Lock<[UInt: String?]>([:])

    /// The line of the code at an address, with its file and directory; `nil`: the program has no debug information.
    static func find(_ address: UInt) -> String? {
        if let line = known.withLock({ $0[address] }) { return line }
        let line = lookUp(address)
        known.withLock { $0[address] = .some(line) }
        return line
    }

    private static func lookUp(_ address: UInt) -> String? {
        // It copies the data that it reads, because a library may be unloaded meanwhile.
        let images = ImageMap.capture(using: LocalMemoryReader())
        let frames = [RichFrame<UInt64>.asyncResumePoint(UInt64(address))]
        let trace = Backtrace(architecture: architecture, frames: frames, images: images)
        let symbols = trace.symbolicated(options: .showSourceLocations)
        guard let line = symbols?.frames.first(where: { _ in true })?.symbol?.sourceLocation, line.line > 0 else { return nil }
        // The expansion of a macro has no file.
        guard !line.path.contains("@__swiftmacro") else { return nil }
        return "\(line.path.split(separator: "/").suffix(2).joined(separator: "/")):\(line.line)"
    }

    #if arch(arm64)
    private static let architecture = "arm64"
    #else
    private static let architecture = "x86_64"
    #endif
}
#else
/// Lines aren't found on other platforms.
enum CodeLine {
    static func find(_ address: UInt) -> String? { nil }
}
#endif
