/// What any concurrent program costs before it does anything.
@main enum EmptyProgram {
    static func main() async {}
}
