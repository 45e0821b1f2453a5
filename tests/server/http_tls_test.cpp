// The server behind TLS, with certificates that the test makes.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <gtest/gtest.h>

#include "server/client.h"
#include "support/data.h"

namespace easydel::server {
namespace {

using test::echo;
using test::ok;
using test::RunningServer;
namespace fs = std::filesystem;

template <class T>
std::string pem(T write) {
  BIO* const memory = BIO_new(BIO_s_mem());
  write(memory);
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(memory, &bytes);
  std::string out(bytes, size_t(count));
  BIO_free(memory);
  return out;
}

// Writes name.crt, for the host `name`, and name.key. `days`: how long it is valid from yesterday.
void make_certificate(const fs::path& folder, const std::string& name, int days = 30) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
  X509_gmtime_adj(X509_getm_notAfter(certificate), -86400 + (days == 0 ? 3600 : days * 86400L));
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  X509_sign(certificate, key, EVP_sha256());
  test::write_file(folder / (name + ".crt"), pem([&](BIO* out) { PEM_write_bio_X509(out, certificate); }));
  test::write_file(folder / (name + ".key"),
                   pem([&](BIO* out) { PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr); }));
  X509_free(certificate);
  EVP_PKEY_free(key);
}

// A TLS client; `version`: the only one that it speaks, 0: any.
class TlsClient {
 public:
  explicit TlsClient(int64_t port, int version = 0) {
    SSL_set_min_proto_version(tls_, version);
    SSL_set_max_proto_version(tls_, version);
    SSL_set_security_level(tls_, 0);  // so that old versions are refused by the server, not here
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    SSL_set_fd(tls_, socket_);
    connected_ = SSL_connect(tls_) == 1;
  }
  ~TlsClient() {
    SSL_free(tls_);
    SSL_CTX_free(context_);
    ::close(socket_);
  }
  bool connected() const { return connected_; }
  std::string version() const { return SSL_get_version(tls_); }
  std::string host() const {
    X509* const certificate = SSL_get1_peer_certificate(tls_);
    char name[100] = {};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
    X509_free(certificate);
    return name;
  }
  std::string ask(const std::string& request, size_t bytes) {
    SSL_write(tls_, request.data(), int(request.size()));
    std::string out(bytes, '\0');
    size_t got = 0;
    for (int count; got < bytes && (count = SSL_read(tls_, out.data() + got, int(bytes - got))) > 0;)
      got += size_t(count);
    out.resize(got);
    return out;
  }
  bool ended_properly() {  // by close_notify
    char byte;
    return SSL_read(tls_, &byte, 1) <= 0 && SSL_get_error(tls_, 0) == SSL_ERROR_ZERO_RETURN;
  }

 private:
  SSL_CTX* context_ = SSL_CTX_new(TLS_client_method());
  SSL* tls_ = SSL_new(context_);
  int socket_ = -1;
  bool connected_ = false;
};

std::function<void(ServeConfig&)> with(const fs::path& certificate, const fs::path& key) {
  return [certificate, key](ServeConfig& config) {
    config.ssl_certfile = certificate.string();
    config.ssl_keyfile = key.string();
  };
}

TEST(HttpTls, AnswersOverTls12And13) {
  test::TemporaryFolder folder;
  make_certificate(folder.path(), "one");
  RunningServer server(echo, with(folder / "one.crt", folder / "one.key"));
  EXPECT_EQ(server.http->address(), str("https://127.0.0.1:", server.port()));
  for (const auto& [version, name] : {std::pair{TLS1_2_VERSION, "TLSv1.2"}, std::pair{TLS1_3_VERSION, "TLSv1.3"}}) {
    TlsClient client(server.port(), version);
    ASSERT_TRUE(client.connected());
    EXPECT_EQ(client.version(), name);
    EXPECT_EQ(client.host(), "one");
    const std::string expected = ok("POST /a abc");
    EXPECT_EQ(client.ask("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", expected.size()), expected);
    const std::string last = ok("GET /b ", "Connection: close\r\n");
    EXPECT_EQ(client.ask("GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", last.size()), last);
    EXPECT_TRUE(client.ended_properly());
  }
  EXPECT_FALSE(TlsClient(server.port(), TLS1_1_VERSION).connected());
  test::RawClient plain(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(plain.all().find("HTTP/"), std::string::npos);
  TlsClient after(server.port());
  EXPECT_TRUE(after.connected());
}

TEST(HttpTls, TellsTheHandlerThatTheClientHasGone) {
  test::TemporaryFolder folder;
  make_certificate(folder.path(), "one");
  test::Signal running, gone;
  std::shared_ptr<Exchange> kept;
  RunningServer server(
      [&](std::shared_ptr<Exchange> exchange) {
        exchange->on_gone([&] { gone.set(); });
        kept = exchange;
        running.set();
      },
      with(folder / "one.crt", folder / "one.key"));
  {
    TlsClient client(server.port());
    client.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0);
    ASSERT_TRUE(running.wait());
  }
  EXPECT_TRUE(gone.wait());
  server.http->stop();
}

TEST(HttpTls, ReadsTheCertificateAnewWithoutLosingAConnection) {
  test::TemporaryFolder folder;
  make_certificate(folder.path(), "one");
  make_certificate(folder.path(), "two");
  const auto use = [&](const std::string& name) {
    for (const char* end : {".crt", ".key"})
      test::write_file(folder / str("used", end), test::read_file(folder / (name + end)));
  };
  use("one");
  RunningServer server(echo, with(folder / "used.crt", folder / "used.key"));
  TlsClient before(server.port());
  EXPECT_EQ(before.host(), "one");
  use("two");
  server.http->reload_certificate();
  TlsClient after(server.port());
  EXPECT_EQ(after.host(), "two");
  EXPECT_EQ(before.ask("GET /a HTTP/1.1\r\nHost: x\r\n\r\n", ok("GET /a ").size()), ok("GET /a "));
  // A pair that cannot be used leaves the old one in place.
  test::write_file(folder / "used.key", test::read_file(folder / "one.key"));
  EXPECT_THROW(server.http->reload_certificate(), UserError);
  EXPECT_EQ(TlsClient(server.port()).host(), "two");
}

TEST(HttpTls, RefusesFilesThatCannotBeUsed) {
  test::TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  make_certificate(folder.path(), "one");
  make_certificate(folder.path(), "two");
  make_certificate(folder.path(), "old", 0);
  test::write_file(folder / "bad.crt", "no certificate");
  const auto refusal = [&](const std::string& certificate, const std::string& key) {
    return test::replaced(test::refusal([&] { RunningServer server(echo, with(folder / certificate, folder / key)); }),
                          at, "");
  };
  EXPECT_EQ(refusal("none.crt", "one.key"), "ssl_certfile: none.crt is not a file\n    give a PEM file");
  EXPECT_EQ(refusal("one.crt", "none.key"), "ssl_keyfile: none.key is not a file\n    give a PEM file");
  EXPECT_EQ(
      refusal("bad.crt", "one.key"),
      "ssl_certfile: bad.crt cannot be used: no start line\n    give a PEM file with the certificate, followed by "
      "those of its issuers");
  EXPECT_EQ(refusal("one.crt", "bad.crt"),
            "ssl_keyfile: bad.crt cannot be used: unsupported\n    give a PEM file with the private key of the "
            "certificate, without a password");
  EXPECT_EQ(refusal("one.crt", "two.key"),
            "ssl_keyfile: two.key cannot be used: key values mismatch\n    give a PEM file with the private key of the "
            "certificate, without a password");
  EXPECT_EQ(refusal("old.crt", "old.key"), "ssl_certfile: the certificate in old.crt has expired\n    renew it");
}

}  // namespace
}  // namespace easydel::server
