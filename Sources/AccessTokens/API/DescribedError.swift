#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An error whose `localizedDescription` is its description.
package protocol DescribedError: LocalizedError, CustomStringConvertible {}

extension DescribedError {
    /// Same as `description`.
    public var errorDescription: String? { description }
}
