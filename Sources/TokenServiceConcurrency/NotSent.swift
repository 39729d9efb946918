/// The load was given up before its turn: nothing has been sent.
package struct NotSent: Error, CustomStringConvertible {
    package let description = "The load was given up before it sent anything."

    package init() {}
}
