import Foundation

/// Returns every text of a value, and of all that mirrors find in it, those of its superclasses included, to any depth.
///
/// Bytes are also read as text, since anyone can decode a dump of them.
func everything(in value: Any) -> String {
    var dumped = ""
    dump(value, to: &dumped)
    var walk = Walk()
    walk.visit(value)
    return dumped + walk.text
}

private struct Walk {
    var text = ""
    private var seen: Set<ObjectIdentifier> = []

    mutating func visit(_ value: Any) {
        text += "\(value) \(String(reflecting: value))\n"
        if let data = value as? Data { text += String(decoding: data, as: UTF8.self) }
        if let bytes = value as? [UInt8] { text += String(decoding: bytes, as: UTF8.self) }
        if type(of: value) is AnyClass, !seen.insert(ObjectIdentifier(value as AnyObject)).inserted { return }
        var mirror: Mirror? = Mirror(reflecting: value)
        while let part = mirror {
            for child in part.children {
                text += (child.label ?? "") + " "
                visit(child.value)
            }
            mirror = part.superclassMirror
        }
    }
}
