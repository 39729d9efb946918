import Foundation
import Testing

@testable import AccessTokensOAuth

struct JSONScannerTests {
    // RFC 8259; the scanner accepts everything that Foundation's decoder accepts, and reads the same values.
    @Test(arguments: [
        #"{"a":"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDD11é🔑"}"#, #"{"a":"x","b":[{"c":[1,-0.5e+3,true,null,{}]},[]]}"#, "{ }",
        " \t\r\n{\"a\" :\"b\" ,\"c\": 1 } \n", #"{"":"","a":""}"#, #"{"a":1E5,"b":0,"c":-0,"d":1.0,"e":10}"#,
        "\u{FEFF}{\"a\":\"b\"}", #"{"a":"b",}"#,
    ])
    func `valid JSON is read as a decoder reads it`(text: String) throws {
        struct Anything: Decodable {
            let text: String?
            init(from decoder: any Decoder) throws { text = try? decoder.singleValueContainer().decode(String.self) }
        }
        let members = ResponseMembers(Data(text.utf8))
        #expect(members.problem == nil)
        for (name, member) in try JSONDecoder().decode([String: Anything].self, from: Data(text.utf8)) {
            #expect(members[name] == member.text.flatMap { $0.isEmpty ? nil : $0 })
        }
    }

    @Test(arguments: [
        "{", "{\"a\"}", "{\"a\":}", "{a:1}", "{'a':1}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":.5}", "{\"a\":+1}", "{\"a\":1e}",
        "{\"a\":-}",
        "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\ud800\\u0041\"}", "{\"a\":\"\n\"}",
        "{\"a\":tru}",
        "{\"a\":[1}", "{\"a\":1 \"b\":2}", "{,}", "{\"a\":1}}", "{\"a\":1},", "{\"a\":[,]}", "{\"a\":{\"b\"}}", "[1", "nul", "",
    ])
    func `invalid JSON is reported as a problem`(text: String) {
        #expect(ResponseMembers(Data(text.utf8)).problem != nil)
    }

    // A refresh token after a syntax error must not be lost.
    @Test(arguments: [
        #"{"a":'b',"refresh_token":"r"}"#, #"{"a":[1,}, "b"],"refresh_token":"r"}"#, #"{a:{"b":"c,"},"refresh_token":"r"}"#,
        #"{"a":1 "refresh_token":"r"}"#, #"{"a":"\x","refresh_token":"r","b"}"#, #"{,"refresh_token":"r",,"#,
        #"{"a" 1,"refresh_token":"r"}"#, #"{"refresh_token":"\ud800","refresh_token":"r"}"#, #"{"a":NaN,"refresh_token":"r"}"#,
        #"{"a":undefined,"refresh_token" : "r" "b""#,
    ])
    func `a member after an invalid one is still found`(text: String) {
        #expect(ResponseMembers(Data(text.utf8)).refreshTokens == ["r"])
    }

    @Test func `the time for a hostile text grows only with its length`() {
        for part in ["[", "{\"a\":", "\"", "\\", ",", "{", "}", "]", "\"a\":1 ", "'", "\"a\":x,", "{\"a\":1,\"b\":"] {
            let text = "{" + String(repeating: part, count: 200_000 / part.utf8.count)
            #expect(ResponseMembers(Data(text.utf8)).problem != nil)
        }
    }
}
