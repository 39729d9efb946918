import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

/// Answers that grant nothing but contain tokens, which no error may show.
@Suite(.inRealTime)
struct UselessAnswerTests {
    static let new = "nEw-t0ken_4Vx9"
    static let jwt = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm5hIn0.x7Kq2pLw9RtY"

    static let bodies = [
        #"{"error":"e","error_description":"got NEW","data":{"access_token":"NEW"}}"#,
        #"{"error":"NEW","error_description":"got NEW","data":[{"token":{"refresh_token" : "NEW"}}]}"#,
        #"{"error":"e","error_description":"got NEW","id_token":"NEW"}"#,
        #"{"error":"e","error_description":"got NEW","result":"{\"access_token\":\"NEW\"}"}"#,
        #"{"error":"e","error_description":"got NEW","request":"grant_type=x&client_secret=NEW"}"#,
        #"{"error":"e","error_description":"got NEW","accessToken":"NEW"}"#,
        #"{"error":"e","error_description":"got nEw%2Dt0ken%5F4Vx9","data":{"access_token":"NEW"}}"#,
        #"{"access_token":"other-1234","token_type":"NEW","data":{"access_token":"NEW"}}"#,
        #"{"error":"e","error_description":"refresh_token=NEW&grant_type=refresh_token"}"#,
        #"{"error":"e","error_description":"refresh%5Ftoken%3DNEW"}"#,
        #"{"error":"e","error_description":"{\"refresh_token\": \"NEW\"}"}"#,
        #"{"error":"e","error_description":"&quot;id_token&quot;:&quot;NEW&quot;"}"#,
        #"{"error":"e","error_description":"Authorization: Bearer NEW"}"#,
        #"{"error":"e","error_description":"Proxy saw 'basic NEW'"}"#,
        #"{"error":"e","error_description":"what is JWT?"}"#,
    ]

    @Test(arguments: [200, 400, 502], bodies)
    func `18: a token in an unusable answer is hidden, wherever it stands`(
        status: Int, body: String
    ) async throws {
        let body = body.replacing("NEW", with: Self.new).replacing("JWT", with: Self.jwt)
        let failure = try await ClientCredentialsLoader(answer: TransportResponse(status, body)).failure()
        let everything = texts(failure) + texts(failure.error as Any) + texts(failure.serverDescription as Any)
        #expect(!everything.contains("4Vx9") && !everything.contains("nEw") && !everything.contains("x7Kq2pLw9RtY"))
        if body.contains("error") { #expect(everything.contains("[hidden]")) }
    }

    @Test(arguments: [
        "text/html; access_token=nEw-t0ken_4Vx9", "text/nEw-t0ken_4Vx9", "nEw-t0ken_4Vx9", "text/html;charset=\"nEw-t0ken_4Vx9\"",
    ])
    func `18: only a known content type of an unusable answer is quoted`(type: String) async throws {
        let form = TransportResponse(200, "access_token=\(Self.new)<br>token_type=bearer", headers: ["Content-Type": type])
        let text = try await texts(ClientCredentialsLoader(answer: form).failure())
        #expect(!text.contains("4Vx9") && !text.contains("nEw"))
        #expect(text.contains(type.hasPrefix("text/html") ? "its type is text/html" : "its type is not JSON"))
    }

    @Test(arguments: [
        "The refresh token is invalid: Bearer token required", "Unsupported parameter 'access_token': use a header",
        "AADSTS700016: Application 'd3590ed6-52b3-4102-aeff-aad2292ab01c' was not found in the directory",
        "See https://login.example.com/docs/errors/InvalidGrantException", "token_type=bearer, expires_in=3600", "token: expired",
    ])
    func `words that only mention tokens are shown`(description: String) async throws {
        let answer = TransportResponse(400, #"{"error":"invalid_grant","error_description":"\#(description)"}"#)
        #expect(try await ClientCredentialsLoader(answer: answer).failure().serverDescription == description)
    }
}
