/// The client's secret, from the environment.
///
/// It can't be an argument: other users of a machine can read a program's arguments.
enum Credentials {
    private static let variable = "CLIENT_SECRET"

    static let advice =
        "put the client's secret into the environment, for example with 'read -rs \(variable); export \(variable)'"

    /// Reads the environment.
    static func secret(in environment: [String: String]) throws(UsageError) -> String {
        guard let secret = environment[variable], !secret.isEmpty else {
            throw UsageError("\(variable) is not set: \(advice)")
        }
        return secret
    }
}
