import Foundation

/// A page of the repository as its readers see it on GitHub: what it links to, and what can be linked to in it.
struct MarkdownPage {
    let text: String

    /// The lines that are prose: outside fenced code, without code spans.
    private var prose: [String] {
        var fence: String?
        return text.components(separatedBy: "\n").compactMap { line in
            let start = line.trimmingCharacters(in: .whitespaces)
            if let open = fence {
                if start.hasPrefix(open) { fence = nil }
                return nil
            }
            for mark in ["```", "~~~"] where start.hasPrefix(mark) {
                fence = mark
                return nil
            }
            return line
        }
    }

    /// The targets of its links and pictures, except those that name a scheme (`https:`, `doc:`).
    var relativeLinks: [String] {
        // Regex literals are parsed whenever they are evaluated, so evaluate them here rather than for each line.
        let (span, inline) = (/`[^`]*`/, /\]\(<?([^()\s>]+)>?(?:\s+"[^"]*")?\)/)
        let (element, scheme) = (/(?:href|src|srcset)="([^"\s]+)"/, /^([A-Za-z][A-Za-z0-9+.\-]*:|\/\/)/)
        let targets = prose.flatMap { line -> [String] in
            let line = line.contains("`") ? line.replacing(span, with: "`") : line
            let links = line.contains("](") ? line.matches(of: inline).map { String($0.1) } : []
            return links + (line.contains("=\"") ? line.matches(of: element).map { String($0.1) } : [])
        }
        return (targets + definitions.map(\.target)).filter { $0.firstMatch(of: scheme) == nil }
    }

    /// The definitions of its link labels, in their order.
    var definitions: [(label: String, target: String)] {
        let definition = /^\s*\[([^\]]+)\]:\s*(\S+)/
        return prose.filter { $0.contains("]:") }.flatMap { line in
            line.matches(of: definition).map { (label: String($0.1), target: String($0.2)) }
        }
    }

    /// The labels that its links name.
    var labels: Set<String> {
        let (span, label) = (/`[^`]*`/, /\]\[([^\]]+)\]/)
        let lines = prose.filter { $0.contains("][") }
        return Set(lines.flatMap { $0.replacing(span, with: "`").matches(of: label).map { String($0.1) } })
    }

    /// The targets of a `#`: the names that GitHub gives headings, and the ids that the page sets itself.
    var anchors: Set<String> {
        var anchors: Set<String> = []
        var counts: [String: Int] = [:]
        let (id, heading) = (/(?:id|name)="([^"]+)"/, /^#{1,6}\s+(.+?)\s*#*$/)
        for line in prose {
            if line.contains("=\"") { anchors.formUnion(line.matches(of: id).map { String($0.1) }) }
            guard line.hasPrefix("#"), let match = line.firstMatch(of: heading) else { continue }
            let name = Self.anchor(of: String(match.1))
            let count = counts[name, default: 0]
            counts[name] = count + 1
            anchors.insert(count == 0 ? name : "\(name)-\(count)")
        }
        return anchors
    }

    /// Lower case, spaces become hyphens, punctuation is removed; a link is replaced by its text.
    private static func anchor(of heading: String) -> String {
        let text = heading.replacing(/\[([^\]]*)\]\([^)]*\)/, with: { $0.1 }).lowercased()
        return String(
            text.compactMap { character -> Character? in
                if character == " " { return "-" }
                return character.isLetter || character.isNumber || "-_".contains(character) ? character : nil
            })
    }
}
