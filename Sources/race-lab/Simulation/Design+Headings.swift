import RaceGallery

extension Design {
    /// The name, with an asterisk if the design is for one thread only.
    var title: String { isThreadSafe ? name : name + "*" }

    /// The title in short lines, for the head of a column.
    var heading: [String] { title.replacing("Service", with: " Service").split(separator: " ").map(String.init) }
}
