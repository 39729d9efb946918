/// The articles' result, which has one parameter.
nonisolated enum Result<Value> {
    case value(Value)
    case error(any Error)

    var value: Value? { if case .value(let value) = self { value } else { nil } }
    var error: (any Error)? { if case .error(let error) = self { error } else { nil } }

    /// The package's result.
    init(_ result: Swift.Result<Value, any Error>) {
        switch result {
        case .success(let value): self = .value(value)
        case .failure(let error): self = .error(error)
        }
    }

    /// The same for the package.
    var standard: Swift.Result<Value, any Error> {
        switch self {
        case .value(let value): .success(value)
        case .error(let error): .failure(error)
        }
    }
}

extension Result: Sendable where Value: Sendable {}
