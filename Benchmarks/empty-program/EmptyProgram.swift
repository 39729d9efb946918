/// A concurrent program that does nothing, as the baseline of the start-up.
@main enum EmptyProgram {
    static func main() async {}
}
