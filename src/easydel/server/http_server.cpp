#include "easydel/server/http_server.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <map>
#include <set>
#include <thread>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/server/handler_pool.h"
#include "easydel/server/serve_config.h"
#include "easydel/server/socket_transport.h"

namespace easydel::server {
namespace {

namespace asio = boost::asio;
using Protocol = asio::generic::stream_protocol;
using Socket = Protocol::socket;
using Acceptor = asio::basic_socket_acceptor<Protocol>;
using Error = boost::system::error_code;
constexpr std::chrono::milliseconds sweep_interval{250};
constexpr std::string_view unix_prefix = "unix:";

bool is_unix(const std::string& host) { return host.starts_with(unix_prefix); }

// The address of a socket without its port; empty: not a network socket.
std::string numeric_host(const sockaddr* address, socklen_t bytes) {
  char host[NI_MAXHOST] = {};
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return "";
  if (getnameinfo(address, bytes, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  const std::string_view mapped = "::ffff:";
  std::string text = host;
  return text.starts_with(mapped) && text.find('.') != std::string::npos ? text.substr(mapped.size()) : text;
}

Protocol::endpoint unix_endpoint(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    refuse("host", str("'unix:", path, "' is not the path of a socket"),
           str("give a path of 1 to ", sizeof address.sun_path - 1, " bytes"));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return {&address, sizeof address};
}

Protocol::endpoint network_endpoint(const std::string& host, int64_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0 || !found)
    refuse("host", str("'", host, "' is not an address of this machine: ", gai_strerror(failed)),
           "127.0.0.1 accepts connections of this machine only, 0.0.0.0 of all");
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  return {found->ai_addr, found->ai_addrlen, IPPROTO_TCP};
}

}  // namespace

struct HttpServer::Implementation {
  Implementation(const ServeConfig& config, Callbacks callbacks, ServerClock clock)
      : config(config), callbacks(std::move(callbacks)), clock(std::move(clock)), acceptor(*io), timer(*io) {}

  const ServeConfig config;
  const Callbacks callbacks;
  const ServerClock clock;
  std::shared_ptr<asio::io_context> io = std::make_shared<asio::io_context>(1);
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  Acceptor acceptor;
  asio::steady_timer timer;
  std::thread thread;
  std::unique_ptr<HandlerPool> pool;
  std::shared_ptr<ssl_ctx_st> tls;  // used on the socket thread
  ConnectionHost host;
  std::string socket_path;  // of a Unix socket
  int64_t port = 0;
  std::atomic<bool> draining = false;
  bool stopping = false;  // stop() was called; of the socket thread
  bool accepting = false, out_of_descriptors = false;
  std::set<std::shared_ptr<Connection>> connections;
  std::map<std::string, int64_t> per_address;
  ConnectionCounts counts;  // of the socket thread
  std::atomic<int64_t> in_progress = 0;

  // Runs `call` on the socket thread and waits for it.
  template <class Call>
  auto on_socket_thread(Call call) {
    std::packaged_task<decltype(call())()> task(std::move(call));
    auto result = task.get_future();
    asio::post(*io, [&task] { task(); });
    return result.get();
  }

  void listen();
  void bind_unix();
  void accept();
  void accepted(Socket socket);
  void add(Socket socket);
  void forget_closed();
  void tick();
  void sweep();
  void handle(std::shared_ptr<Exchange> exchange);
  void make_host();
};

void HttpServer::Implementation::make_host() {
  const ServeConfig& c = config;
  host.limits = {.request = {.header_bytes = size_t(c.max_header_bytes),
                             .header_fields = size_t(c.max_header_fields),
                             .target_bytes = size_t(c.max_target_bytes),
                             .body_bytes = uint64_t(c.max_body_bytes)},
                 .header_seconds = c.header_timeout_seconds,
                 .body_seconds = c.body_timeout_seconds,
                 .idle_seconds = c.idle_timeout_seconds,
                 .request_seconds = c.request_timeout_seconds,
                 .ping_seconds = c.ping_seconds,
                 .body_bytes_per_second = c.min_body_bytes_per_second,
                 .max_unsent_bytes = size_t(c.max_unsent_bytes)};
  host.now = clock.now;
  host.seconds_since_1970 = clock.seconds_since_1970 ? clock.seconds_since_1970 : [] {
    return int64_t(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  };
  host.post = [io = io](std::function<void()> call) { asio::post(*io, std::move(call)); };
  host.check_head = callbacks.check_head ? callbacks.check_head : [](const HttpRequest&, const std::string&) {
    return std::optional<HttpResponse>{};
  };
  host.handle = [this](std::shared_ptr<Exchange> exchange) { handle(std::move(exchange)); };
  host.is_draining = [this] { return draining.load(); };
  host.answered = callbacks.answered ? callbacks.answered : [](int) {};
  host.refused = [this](RefusedFor reason) { ++counts.refused_for[size_t(reason)]; };
  host.received = [this](size_t bytes) { counts.received_bytes += int64_t(bytes); };
  host.sent = [this](size_t bytes) { counts.sent_bytes += int64_t(bytes); };
  host.held = std::make_shared<HeldBytes>(
      HeldBytes::Limits{.all = size_t(c.max_held_bytes), .per_address = size_t(c.max_held_bytes_per_address)});
}

void HttpServer::Implementation::handle(std::shared_ptr<Exchange> exchange) {
  const auto run = [this, exchange] {
    try {
      callbacks.handle(exchange);
    } catch (const std::exception& error) {
      // The exchange answers with a 500 when its last owner lets go of it.
      log::error("request ", exchange->request_id(), ": ", error.what());
    }
  };
  if (pool->submit(run)) return;
  exchange->respond(error_response(
      {.status = 503, .message = config.overload_message, .code = "overloaded", .retry_after_seconds = 1},
      exchange->request().path, exchange->request_id()));
}

void HttpServer::Implementation::bind_unix() {
  socket_path = config.host.substr(unix_prefix.size());
  const Protocol::endpoint endpoint = unix_endpoint(socket_path);
  acceptor.open(endpoint.protocol());
  // The socket's own mode, restricted by the umask, is that of the file that bind() creates.
  if (fchmod(acceptor.native_handle(), 0600) != 0)
    refuse("host", str("cannot set the mode of ", config.host, ": ", std::strerror(errno)));
  Error failed;
  acceptor.bind(endpoint, failed);
  if (failed == asio::error::address_in_use) {
    // A socket that nobody listens on is left over from a process that was killed.
    Socket probe(*io);
    Error refused;
    probe.connect(endpoint, refused);
    const bool is_socket = !files::is_file(socket_path) && !files::is_folder(socket_path);
    if (refused == asio::error::connection_refused && is_socket) {
      files::remove_all(socket_path);
      acceptor.bind(endpoint, failed);
    }
  }
  if (failed) {
    socket_path.clear();  // it belongs to somebody else
    refuse("host", str("cannot listen on ", config.host, ": ", failed.message()), "give another path");
  }
}

void HttpServer::Implementation::listen() {
  if (is_unix(config.host)) {
    bind_unix();
  } else {
    const Protocol::endpoint endpoint = network_endpoint(config.host, config.port);
    acceptor.open(endpoint.protocol());
    acceptor.set_option(asio::socket_base::reuse_address(true));
    Error failed;
    acceptor.bind(endpoint, failed);
    if (failed == asio::error::address_in_use)
      refuse("port", str(config.port, " is in use on ", config.host), "stop the other program, or give another port");
    if (failed) refuse("host", str("cannot listen on ", config.host, ", port ", config.port, ": ", failed.message()));
    sockaddr_storage bound{};
    socklen_t bytes = sizeof bound;
    check(getsockname(acceptor.native_handle(), reinterpret_cast<sockaddr*>(&bound), &bytes) == 0, "no socket name");
    port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  }
  acceptor.listen(1024);
}

void HttpServer::Implementation::accept() {
  if (accepting || draining || !acceptor.is_open()) return;
  accepting = true;
  acceptor.async_accept([this](const Error& failed, Socket socket) {
    accepting = false;
    if (failed == asio::error::operation_aborted || stopping) return;
    const bool exhausted = failed == asio::error::no_descriptors || failed.value() == ENFILE ||
                           failed.value() == ENOBUFS || failed.value() == ENOMEM;
    if (exhausted) {
      // Clients wait in the system's queue; tick() tries again.
      if (!out_of_descriptors)
        log::warning("server: no more file descriptors: new connections wait (", failed.message(), ")");
      out_of_descriptors = true;
      return;
    }
    if (!failed) accepted(std::move(socket));
    accept();
  });
}

void HttpServer::Implementation::accepted(Socket socket) {
  if (out_of_descriptors) log::info("server: accepts connections again");
  out_of_descriptors = false;
  try {
    add(std::move(socket));
  } catch (const boost::system::system_error&) {
    // The client went away between connecting and here.
  }
}

void HttpServer::Implementation::add(Socket socket) {
  const Protocol::endpoint peer = socket.remote_endpoint();
  const std::string address = numeric_host(peer.data(), socklen_t(peer.size()));
  if (!address.empty()) {
    const int on = 1;
    setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ++counts.accepted;
  const bool trusted =
      address.empty() || std::ranges::find(config.trusted_proxies, address) != config.trusted_proxies.end();
  const auto is_full = [&] { return int64_t(connections.size()) >= config.max_connections; };
  const auto is_share_used = [&] { return !trusted && per_address[address] >= config.max_connections_per_address; };
  // Looking at all connections takes milliseconds where there are thousands, so only where it may matter.
  if (is_full() || is_share_used()) forget_closed();
  const bool full = is_full(), share_used = is_share_used();
  if ((full || share_used) && tls) {
    ++(full ? counts.refused_total : counts.refused_address);
    return;  // an answer would need a handshake
  }
  const int descriptor = socket.release();
  auto connection = std::make_shared<Connection>(
      host, tls ? tls_transport(*io, descriptor, tls) : plain_transport(*io, descriptor), address, !trusted);
  if (full || share_used) {
    ++(full ? counts.refused_total : counts.refused_address);
    return connection->refuse(
        {.status = 503,
         .message = full ? "The server has too many connections." : "This address has too many connections.",
         .code = "overloaded",
         .retry_after_seconds = 1});
  }
  ++per_address[address];
  connections.insert(connection);
  connection->start();
}

void HttpServer::Implementation::forget_closed() {
  for (auto at = connections.begin(); at != connections.end();) {
    if (!(*at)->is_closed()) {
      ++at;
      continue;
    }
    const auto count = per_address.find((*at)->address());
    if (count != per_address.end() && --count->second == 0) per_address.erase(count);
    at = connections.erase(at);
  }
}

void HttpServer::Implementation::sweep() {
  for (const auto& connection : connections) connection->sweep();
  forget_closed();
}

void HttpServer::Implementation::tick() {
  timer.expires_after(sweep_interval);
  timer.async_wait([this](const Error& failed) {
    // Where the timer had expired before stop() cancelled it, this is not told of it.
    if (failed || stopping) return;
    sweep();
    accept();
    tick();
  });
}

HttpServer::HttpServer(const ServeConfig& config, Callbacks callbacks, ServerClock clock)
    : implementation_(std::make_unique<Implementation>(config, std::move(callbacks), std::move(clock))) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::start() {
  Implementation& own = *implementation_;
  check(!own.thread.joinable(), "HttpServer::start: it runs already");
  if (own.config.ssl_certfile) own.tls = tls_context(*own.config.ssl_certfile, own.config.ssl_keyfile.value_or(""));
  own.listen();
  own.make_host();
  own.pool = std::make_unique<HandlerPool>(size_t(own.config.handler_threads), size_t(own.config.max_connections));
  own.work.emplace(own.io->get_executor());
  own.accept();
  own.tick();
  own.thread = std::thread([io = own.io] { io->run(); });
}

int64_t HttpServer::port() const { return implementation_->port; }

std::string HttpServer::address() const {
  const Implementation& own = *implementation_;
  if (is_unix(own.config.host)) return own.config.host;
  const bool v6 = own.config.host.find(':') != std::string::npos;
  return str(own.tls ? "https://" : "http://", v6 ? "[" : "", own.config.host, v6 ? "]:" : ":", own.port);
}

bool HttpServer::drain(double seconds) {
  Implementation& own = *implementation_;
  own.on_socket_thread([&own] {
    own.draining = true;
    Error ignored;
    own.acceptor.close(ignored);
    for (const auto& connection : own.connections) connection->drain();
  });
  const Clock::time_point began = Clock::now();
  while (true) {
    const bool empty = own.on_socket_thread([&own] {
      own.forget_closed();
      return own.connections.empty();
    });
    if (empty) return true;
    if (seconds_since(began) > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void HttpServer::stop() {
  Implementation& own = *implementation_;
  if (!own.thread.joinable()) return;
  own.on_socket_thread([&own] {
    own.draining = own.stopping = true;
    Error ignored;
    own.acceptor.close(ignored);
    own.timer.cancel();
    for (const auto& connection : own.connections) connection->abort();
  });
  own.pool = nullptr;
  own.work.reset();
  own.thread.join();
  own.connections.clear();
  if (!own.socket_path.empty()) files::remove_all(own.socket_path);
}

void HttpServer::reload_certificate() {
  Implementation& own = *implementation_;
  if (!own.config.ssl_certfile) return;
  auto renewed = tls_context(*own.config.ssl_certfile, own.config.ssl_keyfile.value_or(""));
  own.on_socket_thread([&own, &renewed] { own.tls = std::move(renewed); });
}

void HttpServer::sweep() {
  implementation_->on_socket_thread([this] { implementation_->sweep(); });
}

ConnectionCounts HttpServer::counts() const {
  Implementation& own = *implementation_;
  return own.on_socket_thread([&own] {
    own.forget_closed();
    own.counts.open = int64_t(own.connections.size());
    own.counts.held_bytes = int64_t(own.host.held->bytes());
    return own.counts;
  });
}

}  // namespace easydel::server
