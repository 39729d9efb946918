import AccessTokens
import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The directory of one key, named by the SHA-256 of the key's name, which is written into it first.
///
/// Texts that Swift calls equal are one key, whichever Unicode characters write them: a service, too, is found by either.
package struct KeyFolder: Sendable {
    package let path: String
    private let parent: String
    private let text: String?
    private let name: FileTokenStore

    package init(of text: String, in parent: String) {
        self.init(named: Self.folder(of: text), in: parent, text: text)
    }

    private static func folder(of text: String) -> String {
        SHA256.hexadecimal(of: text.precomposedStringWithCanonicalMapping)
    }

    private init(named folder: String, in parent: String, text: String? = nil) {
        self.parent = parent
        self.text = text
        path = parent + "/" + folder
        name = FileTokenStore(path: path + "/key")
    }

    /// The names of the keys whose directories have a file.
    package static func names(in directory: String, having file: String) async throws -> [String] {
        let folders: [String]
        _ = try open(directory)
        do {
            folders = try FileManager.default.contentsOfDirectory(atPath: directory)
        } catch {
            throw TokenFileError(.noDirectory, path: directory, detail: "it cannot be listed")
        }
        var names: [String] = []
        for folder in folders where folder.utf8.count == 64 {
            guard let name = try await KeyFolder(named: folder, in: directory).storedName(having: file) else { continue }
            guard self.folder(of: name) == folder else {
                throw TokenFileError(.damaged, path: directory + "/" + folder, detail: "it names another key")
            }
            names.append(name)
        }
        return names
    }

    private func storedName(having file: String) async throws -> String? {
        let hasFile = { FileManager.default.fileExists(atPath: path + "/" + file) }
        guard hasFile() else { return nil }
        do {
            return try await name.load()?.token.value
        } catch  where !hasFile() {
            // It was removed meanwhile.
            return nil
        }
    }

    /// Whether the key has files; throws if the directory of all keys isn't there.
    package func isThere() throws(TokenFileError) -> Bool {
        _ = try Self.open(parent)
        return FileManager.default.fileExists(atPath: path)
    }

    /// Makes the directory, with the key's name in it: a sign-out of many keys must find it before there is a token.
    package func prepare() async throws {
        if try !isThere() { try make() }
        if let text, try await name.load()?.token.value != text {
            try await name.save(StoredToken(AccessToken(text), received: Date(timeIntervalSince1970: 0)))
        }
    }

    func remove() async throws {
        try await name.remove()
        // Another save may have begun: then it isn't empty, or is made again.
        _ = unsafe rmdir(path)
    }

    private func make() throws(TokenFileError) {
        let directory = try Self.open(parent)
        if unsafe mkdir(path, 0o700) != 0, errno != EEXIST {
            throw TokenFileError(.writeFailed, path: path, SystemFailure(number: errno))
        }
        do { try directory.synchronize() } catch { throw TokenFileError(.writeFailed, path: path, error) }
    }

    private static func open(_ directory: String) throws(TokenFileError) -> OpenFile {
        guard !directory.isEmpty else {
            throw TokenFileError(.invalidPath, path: directory, detail: "it is empty, and names no directory")
        }
        do { return try OpenFile(directory: directory) } catch {
            throw TokenFileError(.noDirectory, path: directory, error)
        }
    }
}
