#include "easydel/server/request_parser.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"

namespace easydel::server {
namespace {

using State = RequestParser::State;

// The request, or "status message" of the refusal; "incomplete" otherwise. `step`: bytes that are fed at a time.
std::string parsed(std::string_view bytes, size_t step, const RequestLimits& limits = {}) {
  RequestParser parser(limits);
  std::string waiting;
  for (size_t at = 0; at < bytes.size(); at += step) {
    waiting += bytes.substr(at, step);
    while (!waiting.empty()) {
      const size_t taken = parser.feed(waiting);
      waiting.erase(0, taken);
      if (parser.state() == State::done || parser.state() == State::refused) break;
    }
    if (parser.state() == State::done || parser.state() == State::refused) break;
  }
  if (parser.state() == State::refused) return str(parser.refusal().status, " ", parser.refusal().message);
  if (parser.state() != State::done) return "incomplete";
  const HttpRequest request = parser.take();
  std::string out = str(request.method, " ", request.path, "?", request.query, " 1.", request.minor_version,
                        request.keep_alive ? " open" : " close");
  for (const Header& header : request.headers) out += "|" + header.name + "=" + header.value;
  return out + "|" + request.body;
}

// The same in pieces of one byte, of three, and at once.
std::string read(std::string_view bytes, const RequestLimits& limits = {}) {
  const std::string whole = parsed(bytes, bytes.size() + 1, limits);
  EXPECT_EQ(parsed(bytes, 1, limits), whole) << bytes;
  EXPECT_EQ(parsed(bytes, 3, limits), whole) << bytes;
  return whole;
}

TEST(RequestParser, ReadsRequests) {
  EXPECT_EQ(read("GET /v1/models?a=b%20c HTTP/1.1\r\nHost: localhost:80\r\nX-Two:  a b\t\r\n\r\n"),
            "GET /v1/models?a=b%20c 1.1 open|host=localhost:80|x-two=a b|");
  EXPECT_EQ(read("\r\nGET / HTTP/1.0\r\n\r\n"), "GET /? 1.0 close|");
  EXPECT_EQ(read("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), "GET /? 1.0 open|connection=Keep-Alive|");
  EXPECT_EQ(read("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n"),
            "GET /? 1.1 close|host=a|connection=x, Close|");
  EXPECT_EQ(read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcdef"),
            "POST /? 1.1 open|host=a|content-length=3|abc");
  EXPECT_EQ(read("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), "OPTIONS *? 1.1 open|host=a|");
  EXPECT_EQ(read("GET http://A.b:8/x HTTP/1.1\r\nHost: a.B:8\r\n\r\n"), "GET /x? 1.1 open|host=a.B:8|");
  EXPECT_EQ(read("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n"), "GET /? 1.1 open|host=a|");
  EXPECT_EQ(read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\ncontent-length: 2\r\n\r\nab"),
            "POST /? 1.1 open|host=a|content-length=2|content-length=2|ab");
}

TEST(RequestParser, ReadsChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string got = "POST /? 1.1 open|host=a|transfer-encoding=chunked|";
  EXPECT_EQ(read(head + "5\r\nhello\r\n00000A;x=y\r\n0123456789\r\n0\r\n\r\n"), got + "hello0123456789");
  EXPECT_EQ(read(head + "0\r\nX-Sum: 1\r\n\r\n"), got);
  EXPECT_EQ(read(head + "1\r\na\r\n"), "incomplete");
  const std::string bad = "400 The chunks of the body are not well-formed.";
  const std::string size = "400 The size of a chunk is not a hexadecimal number of at most 8 digits.";
  EXPECT_EQ(read(head + "1\na\r\n0\r\n\r\n"), bad);
  EXPECT_EQ(read(head + "1\r\nab\r\n"), "400 A chunk is longer than its size.");
  EXPECT_EQ(read(head + "1\r\na\n"), "400 A chunk is longer than its size.");
  EXPECT_EQ(read(head + "\r\n"), size);
  EXPECT_EQ(read(head + "-1\r\n"), size);
  EXPECT_EQ(read(head + "0x1\r\n"), size);
  EXPECT_EQ(read(head + " 1\r\n"), size);
  EXPECT_EQ(read(head + "1 \r\n"), size);
  EXPECT_EQ(read(head + "fffffffffffffffff\r\n"), size);
  EXPECT_EQ(read(head + "ffffffff\r\n"), "413 The body is longer than 8388608 bytes.");
  EXPECT_EQ(read(head + std::string(300, '1')), "400 A line between the chunks of the body is too long.");
  EXPECT_EQ(read(head + "0\r\n X: y\r\n\r\n"), "400 A header is folded over several lines.");
  const RequestLimits small{.header_bytes = 100};
  EXPECT_EQ(read(head + "0\r\nA: " + std::string(60, 'a') + "\r\nB: " + std::string(60, 'a') + "\r\n\r\n", small),
            "431 The trailers are longer than 100 bytes.");
}

TEST(RequestParser, RefusesWhatTwoProgramsCouldUnderstandDifferently) {
  const auto post = [](const std::string& headers) {
    return read("POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n");
  };
  EXPECT_EQ(post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
            "400 The request has both Content-Length and Transfer-Encoding.");
  EXPECT_EQ(post("Content-Length: 1\r\nContent-Length: 2\r\n"), "400 The request has two Content-Lengths that differ.");
  EXPECT_EQ(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            "400 The request has two headers Transfer-Encoding.");
  EXPECT_EQ(post("Transfer-Encoding: gzip, chunked\r\n"), "501 Transfer-Encoding can only be 'chunked'.");
  EXPECT_EQ(post("Transfer-Encoding: xchunked\r\n"), "501 Transfer-Encoding can only be 'chunked'.");
  EXPECT_EQ(read("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), "400 HTTP/1.0 has no Transfer-Encoding.");
  for (const char* length : {"-1", "+1", "1,1", "0x1", "", "1 1", "99999999999999999999"})
    EXPECT_EQ(post(str("Content-Length: ", length, "\r\n")), "400 Content-Length is not a number of bytes.") << length;
  EXPECT_EQ(post("X: a\r\n b\r\n"), "400 A header is folded over several lines.");
  EXPECT_EQ(post("X : a\r\n"), "400 A header has a blank before its colon.");
  EXPECT_EQ(post("X\r\n"), "400 A header has no colon.");
  EXPECT_EQ(post(": a\r\n"), "400 The name of a header contains an invalid character.");
  EXPECT_EQ(post("X(y): a\r\n"), "400 The name of a header contains an invalid character.");
  EXPECT_EQ(post("X: a\x01\r\n"), "400 A header contains a control character.");
  EXPECT_EQ(post("X: a\nY: b\r\n"), "400 A line ends in a line feed without a carriage return.");
  EXPECT_EQ(post("X: a\rY: b\r\n"), "400 A carriage return is not followed by a line feed.");
  EXPECT_EQ(post(std::string("X: a\0b\r\n", 8)), "400 The head of the request contains a NUL byte.");
  EXPECT_EQ(post("Host: b\r\n"), "400 The request has two headers Host.");
  EXPECT_EQ(post("Expect: 200-ok\r\n"), "417 The only expectation that is served is 100-continue.");
  EXPECT_EQ(read("GET / HTTP/1.1\r\n\r\n"), "400 The header Host is missing.");
  for (const char* host : {"", "a b", "a/b", "a:b", "a:1234567", "[::1", "a@b", "::1"})
    EXPECT_EQ(read(str("GET / HTTP/1.1\r\nHost: ", host, "\r\n\r\n")), "400 The header Host is not a host.") << host;
  EXPECT_EQ(read("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
            "400 The target names another host than the header Host.");
}

TEST(RequestParser, RefusesOtherTargetsAndFirstLines) {
  const std::string host = "\r\nHost: a\r\n\r\n";
  EXPECT_EQ(read("GET * HTTP/1.1" + host), "400 The target '*' is for OPTIONS alone.");
  EXPECT_EQ(read("CONNECT a:80 HTTP/1.1" + host), "400 The target is not a path.");
  EXPECT_EQ(read("GET ftp://a/ HTTP/1.1" + host), "400 The target is not a path.");
  for (const char* target : {"/%", "/%1", "/%gg", "/a?%zz"})
    EXPECT_EQ(read(str("GET ", target, " HTTP/1.1", host)),
              "400 The target contains a '%' that is not followed by two hex digits.")
        << target;
  for (const char* target : {"/a b", "/\xc3\xa9", "/#x", "/\x01", "/\x7f"})
    EXPECT_EQ(read(str("GET ", target, " HTTP/1.1", host)),
              "400 The target contains a character that has to be percent-encoded.")
        << target;
  for (const char* line : {"GET /", "GET  HTTP/1.1", "GET / HTTP/1.10", "GET / http/1.1", "G(T / HTTP/1.1", "GET / "})
    EXPECT_EQ(read(line + host), "400 This is not an HTTP request.") << line;
  EXPECT_EQ(read("\x16\x03\x01\x02"), "400 This is not an HTTP request.");
  EXPECT_EQ(read("GET / HTTP/2.0" + host), "505 This server speaks HTTP/1.1 and HTTP/1.0.");
  EXPECT_EQ(read("PRI * HTTP/2.0\r\n\r\n"), "505 This server speaks HTTP/1.1 and HTTP/1.0.");
}

TEST(RequestParser, KeepsItsLimits) {
  const RequestLimits limits{.header_bytes = 80, .header_fields = 3, .target_bytes = 10, .body_bytes = 4};
  const std::string head = "GET /123456789 HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(read(head + "\r\n", limits), "GET /123456789? 1.1 open|host=a|");
  EXPECT_EQ(read("GET /1234567890 HTTP/1.1\r\nHost: a\r\n\r\n", limits), "414 The target is longer than 10 bytes.");
  EXPECT_EQ(read(head + "A:\r\nB:\r\n\r\n", limits), "GET /123456789? 1.1 open|host=a|a=|b=|");
  EXPECT_EQ(read(head + "A:\r\nB:\r\nC:\r\n\r\n", limits), "431 The request has more than 3 headers.");
  const size_t left = 80 - head.size() - 3 - 4;
  EXPECT_EQ(read(head + "A: " + std::string(left, 'x') + "\r\n\r\n", limits),
            "GET /123456789? 1.1 open|host=a|a=" + std::string(left, 'x') + "|");
  EXPECT_EQ(read(head + "A: " + std::string(left + 1, 'x') + "\r\n\r\n", limits),
            "431 The headers are longer than 80 bytes.");
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(read(post + "Content-Length: 4\r\n\r\nabcd", limits), "POST /? 1.1 open|host=a|content-length=4|abcd");
  EXPECT_EQ(read(post + "Content-Length: 5\r\n\r\nabcde", limits), "413 The body is longer than 4 bytes.");
  EXPECT_EQ(read(post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\n", limits),
            "413 The body is longer than 4 bytes.");
}

TEST(RequestParser, LeavesTheBytesOfTheNextRequest) {
  RequestParser parser({});
  const std::string two = "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(parser.feed(two), two.size() / 2);
  EXPECT_EQ(parser.take().path, "/a");
  EXPECT_FALSE(parser.began());
  EXPECT_EQ(parser.feed(std::string_view(two).substr(two.size() / 2)), two.size() / 2);
  EXPECT_EQ(parser.take().path, "/b");
}

TEST(PercentDecoded, DecodesOnce) {
  EXPECT_EQ(percent_decoded("a%20b"), "a b");
  EXPECT_EQ(percent_decoded("%252e"), "%2e");
  EXPECT_EQ(percent_decoded("%c3%a9"), "\xc3\xa9");
  for (const char* bad : {"%", "%4", "%zz", "%00", "%0a", "%7f", "%ff", "%c3", "%ed%a0%80"})
    EXPECT_EQ(percent_decoded(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace easydel::server
