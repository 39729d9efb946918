import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The running schedule of an exploration, as a text that survives the process.
///
/// Its memory is a file's, so that a later run finds it after a crash, an `exit` or a kill, and a signal handler can write it out
/// unchanged. The text consists of parts: only the number and the choices change, a byte or two for each choice. If the command
/// that runs the schedule again is known, it follows the line of code, and the choices appear in both.
///
/// Safe to share: between executions only the exploration's thread writes to it, and during an execution only the holder of the
/// engine's lock. The handler only reads it, in a process that is about to end; one choice more or less makes no difference.
@safe final class BlackBox: @unchecked Sendable {
    /// A part of the text.
    enum Part: Int {
        case head, number, middle, choices, tail, command

        /// The part's range in the memory, after the lengths of all parts.
        var range: Range<Int> {
            switch self {
            case .head: 64..<256
            case .number: 256..<320
            case .middle: 320..<1_280
            case .tail: 1_280..<2_048
            case .command: 2_048..<4_096
            case .choices: 4_096..<BlackBox.size
            }
        }
    }

    /// Enough for 32,000 choices below ten; a longer schedule is cut.
    static let size = 69_632
    /// The lengths of the parts, whether a handler wrote the text, the thread that runs the steps, and the present step.
    private static let (lengths, told, thread, step) = (0, 32, 40, 48)

    private let file: BlackBoxFile?
    private let place: String
    /// Whether there is a command that runs the schedule again.
    private let hasCommand: Bool
    let memory: UnsafeMutableRawPointer
    /// The offset of the next choice within the part that holds the choices.
    private var next = 0

    /// Creates a box for an exploration, in a file if possible.
    ///
    /// - Parameter command: Runs the schedule again, after the variables that name it. A command that is too long is left out.
    init(_ place: String, command: String? = nil, package: String = BlackBoxFile.package) {
        self.place = place
        file = BlackBoxFile(size: Self.size, package: package)
        let command = command.map { "' \($0)\n" } ?? ""
        hasCommand = 1...Part.command.range.count ~= command.utf8.count
        unsafe memory = file?.memory ?? .allocate(byteCount: Self.size, alignment: 16)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: Self.size)
        set(.head, "\nInterleavings: the process ended inside schedule ")
        if hasCommand { set(.command, command) }
        CrashHandler.shared.add(self)
    }

    /// Ends the exploration, after which nothing is kept.
    func close() {
        CrashHandler.shared.remove(self)
        file?.remove()
    }

    deinit {
        if file == nil { unsafe memory.deallocate() }
    }

    /// Begins a schedule.
    func begin(_ number: Int, seed: UInt64?) {
        setThread(.current)
        next = 0
        setLength(.choices, 0)
        begin(step: 0)
        let start = Part.number.range.lowerBound
        var end = put(UInt64(max(number, 0)), at: start)
        if let seed {
            for byte in ", seed ".utf8 {
                unsafe memory.storeBytes(of: byte, toByteOffset: end, as: UInt8.self)
                end += 1
            }
            end = put(seed, at: end)
        }
        setLength(.number, end - start)
    }

    func begin(step: Int) { unsafe memory.storeBytes(of: step, toByteOffset: Self.step, as: Int.self) }

    /// Adds a choice; trailing zeros are not part of the text.
    func append(_ choice: Int) {
        let start = Part.choices.range.lowerBound + next
        // 20 digits at most, and a period.
        guard start + 21 <= Part.choices.range.upperBound else { return }
        let end = put(UInt64(max(choice, 0)), at: start)
        unsafe memory.storeBytes(of: UInt8(ascii: "."), toByteOffset: end, as: UInt8.self)
        next = end + 1 - Part.choices.range.lowerBound
        if choice > 0 { setLength(.choices, next - 1) }
    }

    /// Notes which thread runs the steps.
    ///
    /// Atomic: a thread whose step counted as blocked may wake while the next one runs.
    func setThread(_ thread: ThreadIdentity) {
        let place = unsafe memory.advanced(by: Self.thread).assumingMemoryBound(to: Atomic<UInt>.self)
        unsafe place.pointee.store(thread.number, ordering: .relaxed)
    }

    /// Notes the settings with which schedules run from now on.
    func set(_ settings: Settings) {
        let command = hasCommand ? settings.variables : ""
        set(.middle, Self.origin(place, settings))
        set(.tail, "\(settings.replayTail)\n\(command)")
    }

    /// Tells the exploration apart, with the program that it runs, if there is one.
    static func origin(_ place: String, _ settings: Settings) -> String {
        " of the exploration at \(place).\nTo see it again, in a \(ScheduleFailure.build):\n    \(settings.replayHead)"
    }

    private func set(_ part: Part, _ text: String) {
        var length = 0
        for byte in text.utf8.prefix(part.range.count) {
            unsafe memory.storeBytes(of: byte, toByteOffset: part.range.lowerBound + length, as: UInt8.self)
            length += 1
        }
        setLength(part, length)
    }

    private func setLength(_ part: Part, _ length: Int) {
        unsafe memory.storeBytes(of: Int32(length), toByteOffset: Self.lengths + 4 * part.rawValue, as: Int32.self)
    }

    /// Writes a number's digits; returns the offset after them.
    private func put(_ number: UInt64, at start: Int) -> Int {
        var (rest, end) = (number, start + 1)
        while rest >= 10 { (rest, end) = (rest / 10, end + 1) }
        rest = number
        for offset in (start..<end).reversed() {
            unsafe memory.storeBytes(of: UInt8(ascii: "0") + UInt8(rest % 10), toByteOffset: offset, as: UInt8.self)
            rest /= 10
        }
        return end
    }
}

/// Reading a box: from a file, or in a signal handler, where nothing may allocate or take a lock.
extension BlackBox {
    /// Writes the text of a box to a file descriptor.
    static func write(_ memory: UnsafeMutableRawPointer, to descriptor: Int32) {
        var place = 0
        while place < 7 {
            let bytes = unsafe bytes(at: place, in: memory)
            unsafe _ = systemWrite(descriptor, memory + bytes.start, bytes.length)
            place += 1
        }
    }

    static func markTold(_ memory: UnsafeMutableRawPointer) {
        unsafe memory.storeBytes(of: 1, toByteOffset: told, as: Int32.self)
    }

    /// The number of the thread that runs the exploration's steps.
    static func thread(of memory: UnsafeMutableRawPointer) -> UInt {
        unsafe memory.load(fromByteOffset: thread, as: UInt.self)
    }

    /// What a process left that ended during a schedule.
    struct Left {
        let origin: String
        /// `nil`: a handler has already written it.
        let text: String?
        let choices: [Int]
        /// The step that ended the process; 0: none had begun.
        let step: Int
    }

    /// Reads a file's memory; `nil` if no schedule had begun.
    static func left(in memory: UnsafeMutableRawPointer) -> Left? {
        guard unsafe bytes(of: Part.number.rawValue, in: memory).length > 0 else { return nil }
        let parts = (0..<7).map { place in
            let bytes = unsafe bytes(at: place, in: memory)
            let text = unsafe UnsafeRawBufferPointer(start: memory + bytes.start, count: bytes.length)
            return unsafe PlainText.clean(String(decoding: text, as: UTF8.self), keepsLines: true)
        }
        // Leave out the head, which is about the current process.
        let text = "\nInterleavings: an earlier run ended inside schedule \(parts[1...].joined())"
        let isTold = unsafe memory.load(fromByteOffset: told, as: Int32.self) != 0
        return unsafe Left(
            origin: parts[2], text: isTold ? nil : text, choices: Schedule(parts[3])?.choices ?? [],
            step: memory.load(fromByteOffset: step, as: Int.self))
    }

    /// The range of a part of the text; the choices come a second time before the command, if there is one.
    private static func bytes(at place: Int, in memory: UnsafeMutableRawPointer) -> (start: Int, length: Int) {
        guard place > 4 else { return unsafe bytes(of: place, in: memory) }
        let command = unsafe bytes(of: 5, in: memory)
        return place == 6 || command.length == 0 ? command : unsafe bytes(of: 3, in: memory)
    }

    private static func bytes(of part: Int, in memory: UnsafeMutableRawPointer) -> (start: Int, length: Int) {
        let length = unsafe Int(memory.load(fromByteOffset: lengths + 4 * part, as: Int32.self))
        // The same as `Part.range`, which a handler can't call, with checks: a file may contain anything.
        let (start, end) =
            switch part {
            case 0: (64, 256)
            case 1: (256, 320)
            case 2: (320, 1_280)
            case 3: (4_096, size)
            case 4: (1_280, 2_048)
            default: (2_048, 4_096)
            }
        return (start, length < 0 || length > end - start ? 0 : length)
    }
}
