import AccessTokens
import AccessTokensDispatch
import BenchmarkSubjects
import RaceGallery

/// The object that the positive control allocates.
private final class Box: Sendable {
    @inline(never) static func make() -> Box { Box() }
}

extension Suite {
    /// Allocations for each hit, counted in the whole process.
    static func allocations(_ effort: Effort) async throws -> [Table] {
        let warm = try await Warm()
        let count = 10_000
        var table = Table(id: "allocations", title: "Allocations for each hit, counted")
        let subjects: [(String, Call)] = [
            ("TokenService", { use(try await warm.service.retrieveToken()) }),
            ("cachedToken", { use(warm.service.cachedToken) }),
            ("naive actor", { use(try await warm.naive.retrieveToken()) }),
            (
                "stage 3, awaited",
                { await called { done in warm.stage3.retrieveToken { _ in done() } } }
            ),
            (
                "AccessTokenService, awaited",
                { await called { done in warm.shim.retrieveToken { _ in done() } } }
            ),
            ("control: one object", { use(Box.make()) }),
        ]
        for (name, call) in subjects {
            try await call()
            let allocations = try await Allocations.counted { for _ in 0..<count { try await call() } }
            guard let allocations else { return [] }
            // The rest of the process allocates less than a hundredth of an object for each hit.
            let each = Double(allocations.count) / Double(count)
            table.add(name, .init(column: "each", value: Sample(exactly: (each * 100).rounded() / 100), unit: .each))
        }
        return [table]
    }
}
