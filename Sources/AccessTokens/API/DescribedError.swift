package import TokenServiceConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// An error whose `localizedDescription` is its description.
package protocol DescribedError: LocalizedError, Described {}

extension DescribedError {
    /// Same as `description`.
    public var errorDescription: String? { description }
}
