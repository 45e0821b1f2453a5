// Transports over Asio's sockets.
#pragma once

#include <memory>
#include <string>

#include "easydel/server/transport.h"

namespace boost::asio {
class io_context;
}
struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace easydel::server {

// They own the descriptor of a connected socket.
std::unique_ptr<Transport> plain_transport(boost::asio::io_context& io, int descriptor);
// TLS as the server; the handshake is part of the first read.
std::unique_ptr<Transport> tls_transport(boost::asio::io_context& io, int descriptor,
                                         const std::shared_ptr<ssl_ctx_st>& context);

// TLS 1.2 and 1.3 with this certificate chain and key (PEM files). UserError("ssl_certfile"/"ssl_keyfile", ...): a file
// cannot be read, they do not belong together, or the certificate is not valid now.
std::shared_ptr<ssl_ctx_st> tls_context(const std::string& certificate_file, const std::string& key_file);

}  // namespace easydel::server
