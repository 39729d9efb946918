extension Options {
    /// A load over many keys, through a bound.
    struct Keys: Equatable {
        /// How many keys there are.
        let count: Int
        /// How many idle services are kept.
        let idle: Int

        static let limit = 1_000_000
        /// Each request is one to a real server.
        static let realLimit = 10_000

        /// What is kept unless the command line says otherwise: a tenth, so that the bound is felt, and no more than by default.
        static func usualIdle(of count: Int) -> Int { min(count / 10, 1_000) }

        /// What the run does, told before it begins.
        func opening(callers: Int, isSimulated: Bool) -> String {
            let server = isSimulated ? "a simulated server that replaces each refresh token it is given" : "the server"
            let tokens = count == 1 ? "1 key, with a token" : "\(count) keys, each with a token of its own"
            return """
                \(tokens) from \(server). TokenServices keeps at most \(counted(idle, "idle service")). \
                \(counted(callers, "caller")) \(callers == 1 ? "goes" : "go") through all keys, \(KeyRun.callersOfKey) calls at once for \
                each, and again after each expiry.
                """.wrapped(indent: 0)
        }
    }

    static func keys(in given: [String: String]) throws(UsageError) -> Keys? {
        guard given["--keys"] != nil else {
            guard given["--idle"] == nil else { throw UsageError("--idle is for many keys: give --keys as well") }
            return nil
        }
        let limit = given["--token-url"] == nil ? Keys.limit : Keys.realLimit
        guard let count = try number("--keys", in: given, upTo: limit) else { return nil }
        let idle = try number("--idle", in: given, from: 0, upTo: Keys.limit)
        return Keys(count: count, idle: idle ?? Keys.usualIdle(of: count))
    }
}
