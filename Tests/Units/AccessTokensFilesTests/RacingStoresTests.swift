import AccessTokens
import AccessTokensFiles
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 57: two services that race over one token file are told", .inRealTime)
struct RacingStoresTests {
    private let place: Place

    init() throws {
        place = try Place()
    }

    private func told(_ store: some TokenStore, saving number: Int) async -> TokenFileError.Code? {
        await failure { try await store.save(Place.stored(number)) }?.code
    }

    @Test(arguments: [[0, 1], [1, 0]])
    func `57: of two stores that replace the token that both have read, the later one saves its own and says so once`(
        order: [Int]
    ) async throws {
        try await place.store.save(Place.stored())
        let stores = [place.store, place.store], (first, second) = (stores[order[0]], stores[order[1]])
        for store in stores { _ = try await store.load() }
        #expect(await told(first, saving: 1) == nil)
        let error = await failure { try await second.save(Place.stored(2)) }
        #expect(error?.code == .changedElsewhere && error?.remedy == .programChange)
        #expect("\(error as Any)".contains("SharedFileTokenStore"))
        #expect(try await place.store.load() == Place.stored(2))
        #expect(await told(second, saving: 3) == nil)
        #expect(await told(first, saving: 4) == .changedElsewhere)
        _ = try await second.load()
        #expect(await told(second, saving: 5) == nil, "it has read what the other has written")
    }

    @Test func `57: the same is true of a key's two stores`() async throws {
        let stores = (1...2).map { _ in FileTokenStores<String>(directory: place.directory).store(for: "Anna") }
        try await FileTokenStores<String>(directory: place.directory).store(for: "Anna").save(Place.stored())
        for store in stores { #expect(try await store.load() == Place.stored()) }
        #expect(await told(stores[0], saving: 1) == nil)
        #expect(await told(stores[1], saving: 2) == .changedElsewhere)
        #expect(try await stores[0].load() == Place.stored(2))
    }

    @Test func `57: a store that hasn't read the file, or finds no other refresh token there, reports nothing`() async throws {
        let store = place.store
        try await place.store.save(Place.stored(1))
        #expect(await told(store, saving: 2) == nil, "a sign-in, which replaces whatever was there")
        try await place.store.save(Place.stored(2))
        #expect(await told(store, saving: 3) == nil, "a server that doesn't rotate")
        try FileManager.default.removeItem(atPath: place.path)
        #expect(await told(store, saving: 4) == nil)
        try place.put(try place.bytes.dropLast(9))
        #expect(await told(store, saving: 5) == nil, "a damaged file")
        try place.put([])
        #expect(await told(store, saving: 6) == nil)
        try await place.store.save(StoredToken(AccessToken("bare"), received: Date()))
        #expect(await told(store, saving: 7) == nil, "a token without a grant")
        let backup = try place.bytes
        #expect(await told(store, saving: 8) == nil)
        try place.put(backup)
        #expect(await told(store, saving: 9) == nil, "a copy of what it had read")
    }

    @Test(arguments: [[0, 1], [1, 0]])
    func `57: of two services that spend one refresh token at the same moment, the later one has an event that says so`(
        order: [Int]
    ) async throws {
        let began = [SingleResult<Void>(), SingleResult<Void>()], gates = [SingleResult<Void>(), SingleResult<Void>()]
        let services = (0...1).map { index in
            TokenService(store: FileTokenStore(path: place.path)) { previous in
                began[index].complete(with: .success(()))
                try await gates[index].value()
                return AccessToken("access-\(index)", lifetime: .seconds(3_600), refreshToken: "refresh-\(index)")
            }
        }
        await services[0].replace(with: AccessToken("signed-in", lifetime: .seconds(3_600), refreshToken: "refresh"))
        let token = try await services[1].retrieveToken(), streams = services.map { $0.events() }
        for service in services { await service.invalidate(token) }
        let callers = services.map { service in Task { try await service.retrieveToken().value } }
        for begun in began { try await begun.value() }
        for index in order {
            gates[index].complete(with: .success(()))
            #expect(try await callers[index].value == "access-\(index)", "no caller fails")
        }
        for (index, isTold) in zip(order, [false, true]) {
            var failures: [String] = []
            for await event in streams[index] where [.storeFailed, .loadSucceeded].contains(event.name) {
                if event.name == .loadSucceeded { break }
                failures.append("\(event.error as Any)")
            }
            #expect(failures.count == (isTold ? 1 : 0) && failures.allSatisfy { $0.contains("SharedFileTokenStore") })
            #expect(await services[index].drain(within: .zero).isComplete, "nothing is pending")
            await services[index].resume()
        }
        #expect(try await place.store.load()?.token.value == "access-\(order[1])")
    }
}
