#include "easydel/server/socket_transport.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

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

class TlsTransport : public Transport {
 public:
  TlsTransport(Socket socket, std::shared_ptr<asio::ssl::context> context)
      : context_(std::move(context)), stream_(std::make_shared<Stream>(std::move(socket), *context_)) {}
  void read(Received received) override {
    if (shaken_) return read_records(std::move(received));
    shaken_ = true;
    stream_->async_handshake(Stream::server,
                             [this, stream = stream_, received = std::move(received)](const Error& error) mutable {
                               error ? received({}) : read_records(std::move(received));
                             });
  }
  void write(std::string_view bytes, Done done) override {
    stream_->async_write_some(asio::buffer(bytes.data(), bytes.size()), adapted(std::move(done)));
  }
  // Sends close_notify. The other side's answer ends the shutdown; a time limit of the connection does otherwise.
  void end_output() override {
    stream_->async_shutdown([stream = stream_](const Error&) {
      Error ignored;
      stream->lowest_layer().shutdown(Socket::shutdown_send, ignored);
    });
  }
  void close() override {
    Error ignored;
    stream_->lowest_layer().close(ignored);
  }
  bool has_ended() const override { return has_hung_up(stream_->lowest_layer().native_handle()); }

 private:
  using Stream = asio::ssl::stream<Socket>;
  void read_records(Received received) {
    stream_->async_read_some(asio::buffer(incoming_), [this, stream = stream_, received = std::move(received)](
                                                          const Error& error, size_t bytes) {
      received(std::string_view(incoming_.data(), error ? 0 : bytes));
    });
  }

  std::shared_ptr<asio::ssl::context> context_;
  std::shared_ptr<Stream> stream_;
  std::array<char, 4096> incoming_;
  bool shaken_ = false;
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
                                         std::shared_ptr<asio::ssl::context> context) {
  return std::make_unique<TlsTransport>(socket_of(io, descriptor), std::move(context));
}

std::shared_ptr<asio::ssl::context> tls_context(const std::string& certificate_file, const std::string& key_file) {
  for (const auto& [key, file] : {std::pair{"ssl_certfile", &certificate_file}, std::pair{"ssl_keyfile", &key_file}})
    if (!files::is_file(*file)) refuse(key, *file + " is not a file", "give a PEM file");
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
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
