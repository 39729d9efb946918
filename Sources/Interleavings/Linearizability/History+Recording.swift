/// Recording a call together with the code that makes it.
extension History {
    /// Records a call and what it returns.
    ///
    /// If `body` throws, the operation may take effect at any later moment, or never. Pass `outcome` to give errors a meaning.
    ///
    /// - Parameters:
    ///   - caller: The caller's name in the report.
    ///   - operation: The operation that is called.
    ///   - body: Makes the call, on the caller's actor.
    /// - Returns: What `body` returned.
    @inlinable @discardableResult
    public func record<Failure>(
        _ caller: String, _ operation: Specification.Operation,
        _ body: () async throws(Failure) -> Specification.Outcome
    ) async throws(Failure) -> Specification.Outcome {
        try await record(caller, operation, body) { try? $0.get() }
    }

    /// Records a synchronous call and what it returns.
    ///
    /// If `body` throws, the operation may take effect at any later moment, or never. Pass `outcome` to give errors a meaning.
    ///
    /// - Parameters:
    ///   - caller: The caller's name in the report.
    ///   - operation: The operation that is called.
    ///   - body: Makes the call.
    /// - Returns: What `body` returned.
    @inlinable @discardableResult
    public func record<Failure>(
        _ caller: String, _ operation: Specification.Operation,
        _ body: () throws(Failure) -> Specification.Outcome
    ) throws(Failure) -> Specification.Outcome {
        try record(caller, operation, body) { try? $0.get() }
    }

    /// Records a call and its result in the specification's terms.
    ///
    /// - Parameters:
    ///   - caller: The caller's name in the report.
    ///   - operation: The operation that is called.
    ///   - body: Makes the call, on the caller's actor.
    ///   - outcome: Translates the value or the error; `nil` if the operation may take effect at any later moment, or never.
    /// - Returns: What `body` returned.
    @inlinable @discardableResult
    public func record<Value, Failure>(
        _ caller: String, _ operation: Specification.Operation, _ body: () async throws(Failure) -> Value,
        outcome: (Result<Value, Failure>) -> Specification.Outcome?
    ) async throws(Failure) -> Value {
        let call = begin(caller, operation)
        let result: Result<Value, Failure>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        if let outcome = outcome(result) { call.end(returning: outcome) }
        return try result.get()
    }

    /// Records a synchronous call and its result in the specification's terms.
    ///
    /// - Parameters:
    ///   - caller: The caller's name in the report.
    ///   - operation: The operation that is called.
    ///   - body: Makes the call.
    ///   - outcome: Translates the value or the error; `nil` if the operation may take effect at any later moment, or never.
    /// - Returns: What `body` returned.
    @inlinable @discardableResult
    public func record<Value, Failure>(
        _ caller: String, _ operation: Specification.Operation, _ body: () throws(Failure) -> Value,
        outcome: (Result<Value, Failure>) -> Specification.Outcome?
    ) throws(Failure) -> Value {
        let call = begin(caller, operation)
        let result: Result<Value, Failure>
        do { result = .success(try body()) } catch { result = .failure(error) }
        if let outcome = outcome(result) { call.end(returning: outcome) }
        return try result.get()
    }
}
