/// Recording a call together with the code that makes it.
extension History {
    /// Records a call and what it returns.
    ///
    /// If `body` throws, the operation may take effect at any later moment, or never. To give an error a meaning, or to translate
    /// the call's value, let `body` return the outcome:
    ///
    /// ```swift
    /// try await history.record("a", .take) {
    ///     do { return .taken(try await stock.take()) } catch is SoldOut { return .soldOut }
    /// }
    /// ```
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
        let call = begin(caller, operation)
        let outcome = try await body()
        call.end(returning: outcome)
        return outcome
    }

    /// Records a synchronous call and what it returns; otherwise like the asynchronous function.
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
        let call = begin(caller, operation)
        let outcome = try body()
        call.end(returning: outcome)
        return outcome
    }
}
