import Dispatch

struct Uploader {
    let service: AccessTokenService

    func upload(_ file: String, then completion: @escaping (String) -> Void) {
        service.retrieveToken { result in
            completion("\(file) with \((try? result.get())?.value ?? "no token")")
        }
    }
}

struct Prefetcher {
    let service: AccessTokenService

    func prefetch(then completion: @escaping (Bool) -> Void) {
        service.retrieveToken { result in
            completion((try? result.get()) != nil)
        }
    }
}
