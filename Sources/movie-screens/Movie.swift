/// What the server knows of a movie.
struct Movie: Decodable, Sendable, Equatable {
    let title: String
    let year: Int
}
