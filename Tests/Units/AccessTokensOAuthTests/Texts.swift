/// Returns every text that a value has.
func texts(_ value: Any) -> String {
    var dumped = ""
    dump(value, to: &dumped)
    return "\(value) \(String(reflecting: value)) \(dumped) \(Mirror(reflecting: value).children.map { "\($0)" })"
}
