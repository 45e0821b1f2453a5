#include "easydel/server/socket_transport.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::server {
namespace {

namespace asio = boost::asio;
using Socket = asio::generic::stream_protocol::socket;
using Error = boost::system::error_code;

Socket socket_of(asio::io_context& io, int descriptor) {
  int family = AF_UNSPEC;
  socklen_t bytes = sizeof family;
  getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &bytes);
  return Socket(io, asio::generic::stream_protocol(family, 0), descriptor);
}

bool has_hung_up(int descriptor) {
  pollfd state{.fd = descriptor, .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0;
}

auto adapted(Transport::Done done) {
  return [done = std::move(done)](const Error& error, size_t bytes) { done(bytes, bool(error)); };
}

class PlainTransport : public Transport {
 public:
  explicit PlainTransport(Socket socket) : socket_(std::move(socket)) {
    Error ignored;
    socket_.non_blocking(true, ignored);
  }
  // Waiting takes no buffer: thousands of connections wait, and one at a time reads.
  void read(Received received) override {
    socket_.async_wait(Socket::wait_read, [this, received = std::move(received)](const Error& error) mutable {
      if (error) return received({});
      std::array<char, max_read_bytes> bytes;
      Error failed;
      const size_t count = socket_.read_some(asio::buffer(bytes), failed);
      if (failed == asio::error::would_block) return read(std::move(received));
      received(std::string_view(bytes.data(), failed ? 0 : count));
    });
  }
  size_t write_now(std::string_view bytes) override {
    Error failed;
    const size_t count = socket_.write_some(asio::buffer(bytes.data(), bytes.size()), failed);
    return failed ? 0 : count;
  }
  void write(std::string_view bytes, Done done) override {
    socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()), adapted(std::move(done)));
  }
  void end_output() override {
    Error ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
  void close() override {
    Error ignored;
    socket_.close(ignored);
  }
  bool has_ended() const override { return has_hung_up(const_cast<Socket&>(socket_).native_handle()); }

 private:
  Socket socket_;
};

// What OpenSSL writes goes to the socket at once. Its own BIO for sockets would raise SIGPIPE.
int send_bytes(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(int(reinterpret_cast<intptr_t>(BIO_get_data(bio))), bytes, size_t(count), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_write(bio);
  return int(sent);
}

int receive_bytes(BIO* bio, char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(int(reinterpret_cast<intptr_t>(BIO_get_data(bio))), bytes, size_t(count), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  return int(got);
}

const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const out = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(out, send_bytes);
    BIO_meth_set_read(out, receive_bytes);
    BIO_meth_set_ctrl(out, [](BIO*, int what, long, void*) -> long { return what == BIO_CTRL_FLUSH ? 1 : 0; });
    return out;
  }();
  return method;
}

// OpenSSL reads and writes the socket itself: through asio::ssl each record would be copied twice more and pass the
// event loop twice, and each connection would have 38 KB of buffers.
class TlsTransport : public Transport {
 public:
  TlsTransport(Socket socket, const std::shared_ptr<SSL_CTX>& context)
      : socket_(std::move(socket)), ssl_(SSL_new(context.get()), &SSL_free) {
    Error ignored;
    socket_.non_blocking(true, ignored);
    check(ssl_ != nullptr, "SSL_new failed");
    BIO* const bio = BIO_new(socket_method());
    BIO_set_data(bio, reinterpret_cast<void*>(intptr_t(socket_.native_handle())));
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_accept_state(ssl_.get());
  }
  void read(Received received) override {
    if (SSL_pending(ssl_.get()) > 0)
      return asio::post(socket_.get_executor(),
                        [this, received = std::move(received)]() mutable { read_now(std::move(received)); });
    wait(Socket::wait_read, [this, received = std::move(received)](bool failed) mutable {
      failed ? received({}) : read_now(std::move(received));
    });
  }
  size_t write_now(std::string_view bytes) override {
    size_t sent = 0;
    // Before the handshake there is nothing to write.
    while (sent < bytes.size() && sent < max_written_at_once && is_open()) {
      ERR_clear_error();
      size_t count = 0;
      if (SSL_write_ex(ssl_.get(), bytes.data() + sent, bytes.size() - sent, &count) != 1) break;
      sent += count;
    }
    return sent;
  }
  void write(std::string_view bytes, Done done) override {
    // A wait may have ended well just before close(); the descriptor may be another connection's by now.
    if (!is_open()) return finish(std::move(done), 0, true);
    ERR_clear_error();
    size_t count = 0;
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count);
    if (result == 1) return finish(std::move(done), count, false);
    const std::optional<Socket::wait_type> wanted = wanted_after(result);
    if (!wanted) return finish(std::move(done), 0, true);
    wait(*wanted, [this, bytes, done = std::move(done)](bool failed) mutable {
      failed ? done(0, true) : write(bytes, std::move(done));
    });
  }
  void end_output() override {
    ERR_clear_error();
    if (is_open() && SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());  // sends close_notify
    Error ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
  void close() override {
    Error ignored;
    socket_.close(ignored);
  }
  bool has_ended() const override { return has_hung_up(const_cast<Socket&>(socket_).native_handle()); }

 private:
  static constexpr size_t max_written_at_once = 256 << 10;  // others wait meanwhile
  bool is_open() const { return socket_.is_open(); }

  // The first reads are the handshake, which also writes.
  void read_now(Received received) {
    if (!is_open()) return received({});
    std::array<char, max_read_bytes> bytes;
    ERR_clear_error();
    size_t count = 0;
    const int result = SSL_read_ex(ssl_.get(), bytes.data(), bytes.size(), &count);
    if (result == 1) return received({bytes.data(), count});
    const std::optional<Socket::wait_type> wanted = wanted_after(result);
    if (!wanted) return received({});
    wait(*wanted, [this, received = std::move(received)](bool failed) mutable {
      failed ? received({}) : read_now(std::move(received));
    });
  }
  // What has to happen before the call can be repeated; nothing: the connection has ended.
  std::optional<Socket::wait_type> wanted_after(int result) const {
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return Socket::wait_read;
      case SSL_ERROR_WANT_WRITE:
        return Socket::wait_write;
      default:
        return std::nullopt;
    }
  }
  template <class Call>
  void wait(Socket::wait_type what, Call call) {
    socket_.async_wait(what, [call = std::move(call)](const Error& error) mutable { call(bool(error)); });
  }
  void finish(Done done, size_t bytes, bool failed) {
    asio::post(socket_.get_executor(), [done = std::move(done), bytes, failed] { done(bytes, failed); });
  }

  Socket socket_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
};

// The oldest error that OpenSSL noted, without the parts of its text that only its developers read.
std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason ? reason : "unknown reason";
}

}  // namespace

std::unique_ptr<Transport> plain_transport(asio::io_context& io, int descriptor) {
  return std::make_unique<PlainTransport>(socket_of(io, descriptor));
}

std::unique_ptr<Transport> tls_transport(asio::io_context& io, int descriptor,
                                         const std::shared_ptr<SSL_CTX>& context) {
  return std::make_unique<TlsTransport>(socket_of(io, descriptor), context);
}

std::shared_ptr<SSL_CTX> tls_context(const std::string& certificate_file, const std::string& key_file) {
  for (const auto& [key, file] : {std::pair{"ssl_certfile", &certificate_file}, std::pair{"ssl_keyfile", &key_file}})
    if (!files::is_file(*file)) refuse(key, *file + " is not a file", "give a PEM file");
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  SSL_CTX* const native = context.get();
  check(native != nullptr, "SSL_CTX_new failed");
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(native, certificate_file.c_str()) != 1)
    refuse("ssl_certfile", str(certificate_file, " cannot be used: ", openssl_reason()),
           "give a PEM file with the certificate, followed by those of its issuers");
  if (SSL_CTX_use_PrivateKey_file(native, key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    refuse("ssl_keyfile", str(key_file, " cannot be used: ", openssl_reason()),
           "give a PEM file with the private key of the certificate, without a password");
  if (SSL_CTX_check_private_key(native) != 1)
    refuse("ssl_keyfile", str(key_file, " is not the key of ", certificate_file), "give the certificate's own key");
  const X509* const certificate = SSL_CTX_get0_certificate(native);
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
    refuse("ssl_certfile", str("the certificate in ", certificate_file, " has expired"), "renew it");
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
    refuse("ssl_certfile", str("the certificate in ", certificate_file, " is not valid yet"), "check the clock");
  return context;
}

}  // namespace easydel::server
