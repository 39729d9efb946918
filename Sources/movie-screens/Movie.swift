/// A movie, as the server describes it.
struct Movie: Decodable, Sendable, Equatable {
    let title: String
    let year: Int
}
