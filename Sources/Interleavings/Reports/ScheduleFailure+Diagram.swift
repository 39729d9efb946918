extension ScheduleFailure {
    /// Who ran when, as text for a terminal: a column for each task, queue or thread, and time downwards.
    ///
    /// Who logged nothing, and was given no name, has no column. It is drawn when it is asked for.
    public var diagram: String { Diagram(trace, error: underlying).text }

    /// Who ran when, as an SVG image that needs nothing else, for light and dark pages.
    ///
    /// It is drawn when it is asked for: write it to a file, or attach it to a test's issue.
    public var svg: String {
        Diagram(trace, error: underlying).svg(caption: "\(heading). In a \(Self.build): .replay(\"\(schedule)\")")
    }
}
