/// The load's time was over before its turn: nothing has been sent.
package struct NotSent: Error, CustomStringConvertible {
    package let description = "The load's time was over before it could send anything."

    package init() {}
}
