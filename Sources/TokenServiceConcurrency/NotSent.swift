/// The load's time was over before its turn came: nothing has been sent.
package struct NotSent: Error, CustomStringConvertible {
    package let description = "The load was given up before it could begin."

    package init() {}
}
