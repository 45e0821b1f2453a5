// The server over HTTP: serve_bench [--row sockets|engine] [--streams 1000] [--events 200] [--clients 32]
// [--prompt 265] [--new 64] [--rounds 2] [--turns 3]. sockets: events a second of CPU time of the thread that has the
// sockets, over a fake engine, against a plain Beast loop that writes the same bytes, and with TLS against without.
// engine: requests through HTTP and HTTPS against the same engine alone, in turns, with SmolLM2-135M's shape; how many
// milliseconds of a first token lie outside of the engine, on the mean; and the medians of the turns' ratios.

#include <algorithm>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/overrides.h"
#include "easydel/server/server.h"
#include "measure.h"
#include "serve_client.h"

namespace easydel::bench {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

// CPU seconds of each thread of this process.
std::map<int, double> thread_seconds() {
  std::map<int, double> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    double nanoseconds = 0;
    std::ifstream(entry.path() / "schedstat") >> nanoseconds;
    out[std::stoi(entry.path().filename())] = nanoseconds * 1e-9;
  }
  return out;
}

// What makes a step: an event of each stream.
struct Steps {
  virtual ~Steps() = default;
  virtual void step() = 0;
  virtual int64_t streams() const = 0;
};

class FakeEngine final : public server::ServedEngine, public Steps {
 public:
  int64_t add(esurge::Request, Listener listener) override {
    const std::lock_guard lock(mutex_);
    listeners_.push_back(std::move(listener));
    return std::ssize(listeners_);
  }
  void step() override {
    const std::lock_guard lock(mutex_);
    ++tokens_;
    for (const Listener& listener : listeners_) {
      esurge::RequestOutput output;
      output.num_generated_tokens = tokens_;
      esurge::CompletionOutput& one = output.outputs.emplace_back();
      one.text = " word";
      listener(std::move(output));
    }
  }
  int64_t streams() const override {
    const std::lock_guard lock(mutex_);
    return std::ssize(listeners_);
  }
  void abort(int64_t) override {}
  void pause() override {}
  void resume() override {}
  esurge::EngineMetrics metrics() const override { return {}; }
  void save_prefix_cache(const std::filesystem::path&) override {}
  void reset_prefix_cache() override {}
  int64_t load_adapter(const std::string&, const std::filesystem::path&, bool) override { return 0; }
  void unload_adapter(const std::string&) override {}
  std::vector<esurge::AdapterInfo> adapters() const override { return {}; }
  esurge::HeldWeights hold_weights() const override { return {}; }
  std::string update_weights(const std::filesystem::path&, bool) override { return {}; }

 private:
  mutable std::mutex mutex_;
  std::vector<Listener> listeners_;
  int64_t tokens_ = 0;
};

// Reads a request from each connection, and writes a chunk to all of them at each step.
class BeastLoop final : public Steps {
 public:
  explicit BeastLoop(std::string event) : event_(std::move(event)) {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~BeastLoop() override {
    io_.stop();
    thread_.join();
  }
  int64_t port() const { return acceptor_.local_endpoint().port(); }
  void step() override {
    asio::post(io_, [this] {
      for (const auto& one : ready_)
        asio::async_write(one->socket, http::make_chunk(asio::buffer(event_)),
                          [](boost::system::error_code, size_t) {});
    });
  }
  int64_t streams() const override { return begun_; }

 private:
  struct Connection {
    explicit Connection(asio::ip::tcp::socket given) : socket(std::move(given)) {}
    asio::ip::tcp::socket socket;
    boost::beast::flat_buffer buffer;
    http::request<http::string_body> request;
    http::response<http::empty_body> response;
    std::optional<http::response_serializer<http::empty_body>> serializer;
  };
  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, asio::ip::tcp::socket socket) {
      if (error) return;
      auto one = std::make_shared<Connection>(std::move(socket));
      http::async_read(one->socket, one->buffer, one->request, [this, one](boost::system::error_code, size_t) {
        one->response.set(http::field::content_type, "text/event-stream");
        one->response.chunked(true);
        one->serializer.emplace(one->response);
        http::async_write_header(one->socket, *one->serializer, [this, one](boost::system::error_code, size_t) {
          ready_.push_back(one);
          ++begun_;
        });
      });
      accept();
    });
  }
  const std::string event_;
  asio::io_context io_{1};
  asio::ip::tcp::acceptor acceptor_{io_, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::vector<std::shared_ptr<Connection>> ready_;
  std::atomic<int64_t> begun_ = 0;
  std::thread thread_;
};

struct Rate {
  double events_per_second = 0;  // of CPU time of the busiest of the threads
  double bytes_per_event = 0;
};

// `threads`: those among which the one with the sockets is.
Rate measure_steps(Steps& steps, const std::set<int>& threads, int64_t port, SSL_CTX* tls, int streams, int events) {
  Readers readers(port, tls, streams);
  while (steps.streams() < streams) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  steps.step();
  readers.wait_for(streams);
  const std::map<int, double> before = thread_seconds();
  const int64_t bytes = readers.bytes();
  for (int i = 1; i <= events; ++i) {
    steps.step();
    readers.wait_for(int64_t(i) * streams);  // at most one event of each stream waits
  }
  readers.wait_for(int64_t(events + 1) * streams);
  double seconds = 0;
  for (const auto& [thread, now] : thread_seconds())
    if (threads.contains(thread)) seconds = std::max(seconds, now - (before.contains(thread) ? before.at(thread) : 0));
  const double all = double(events) * streams;
  return {all / seconds, double(readers.bytes() - bytes) / all};
}

std::set<int> threads_now() {
  std::set<int> out;
  for (const auto& [thread, seconds] : thread_seconds()) out.insert(thread);
  return out;
}
std::set<int> threads_since(const std::set<int>& before) {
  std::set<int> out;
  for (const int thread : threads_now())
    if (!before.contains(thread)) out.insert(thread);
  return out;
}

server::ServeConfig serve_config(int streams, const Scratch* certificate = nullptr) {
  server::ServeConfig config;
  config.host = "127.0.0.1";
  config.port = 0;
  config.log_level = server::LogLevel::warning;
  config.max_connections = config.max_connections_per_address = 2 * streams + 10;
  config.max_waiting_requests = 2 * streams;
  if (certificate) {
    config.ssl_certfile = (*certificate / "cert.pem").string();
    config.ssl_keyfile = (*certificate / "key.pem").string();
  }
  return config;
}
void make_certificate(const Scratch& folder) {
  const Measured made = run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                             "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", (folder / "key.pem").string(),
                             "-out", (folder / "cert.pem").string()});
  check(made.status == 0, made.err);
}
int64_t port_of(const server::Server& server) {
  const std::string address = server.address();
  return std::stoll(address.substr(address.rfind(':') + 1));
}

Rate measure_server(int streams, int events, const Scratch* certificate, SSL_CTX* tls) {
  const std::set<int> before = threads_now();
  server::Server server(serve_config(streams, certificate));
  auto engine = std::make_shared<FakeEngine>();
  server.start();
  server::ServedModel model{.id = "fake", .created = 1, .max_model_len = 1 << 20};
  model.engine = engine;
  model.tokenizer = text::Tokenizer::load(source_root() / "tests/data/models/stories260K-chat");
  server.add(std::move(model));
  server.set_ready();
  return measure_steps(*engine, threads_since(before), port_of(server), tls, streams, events);
}

void sockets(int streams, int events, int rounds, SSL_CTX* tls) {
  const Scratch certificate;
  make_certificate(certificate);
  const Rate first = measure_server(streams, std::min(events, 20), nullptr, nullptr);
  const std::string head = "data: ", end = "\n\n";
  const size_t chunk_frame = 6;  // "c8", line ends
  const std::string event =
      head + std::string(size_t(first.bytes_per_event) - head.size() - end.size() - chunk_frame, 'x') + end;
  for (int round = 0; round < rounds; ++round) {
    const Rate ours = measure_server(streams, events, nullptr, nullptr);
    Rate beast;
    {
      const std::set<int> before = threads_now();
      BeastLoop loop(event);
      beast = measure_steps(loop, threads_since(before), loop.port(), nullptr, streams, events);
    }
    const Rate secure = measure_server(streams, events, &certificate, tls);
    std::printf(
        "%d streams: %.0f events of %.0f bytes a second of CPU time; Beast loop %.0f (%.0f bytes): %.2f of it (target "
        "0.7); "
        "with TLS %.0f: %.2f of that without (target 0.6)\n",
        streams, ours.events_per_second, ours.bytes_per_event, beast.events_per_second, beast.bytes_per_event,
        ours.events_per_second / beast.events_per_second, secure.events_per_second,
        secure.events_per_second / ours.events_per_second);
  }
}

struct Load {
  double tokens_per_second = 0, first_token = 0;  // first_token: median seconds
  double outside_of_engine = 0;                   // mean seconds of a first token
};

// Each client asks again as soon as it has its answer. `ask`: answers a prompt, and returns seconds to the first token.
Load load(int clients, int rounds, int fresh, const std::function<double(int client, int round)>& ask) {
  std::mutex mutex;
  std::vector<double> first;
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (int client = 0; client < clients; ++client)
      threads.emplace_back([&, client] {
        for (int round = 0; round < rounds; ++round) {
          const double seconds = ask(client, round);
          const std::lock_guard lock(mutex);
          first.push_back(seconds);
        }
      });
  }
  const double seconds = seconds_since(begin);
  double mean = 0;
  for (const double one : first) mean += one / double(first.size());
  return {double(clients * rounds * fresh) / seconds, spread(first).median, mean};
}

void through_http(int clients, int prompt, int fresh, int rounds, int turns, SSL_CTX* tls) {
  const Scratch scratch;
  make_certificate(scratch);
  Value document = Value::map(), model = Value::map();
  model.set("name_or_path", Value::text(smol_shape(scratch / "smol135m").string()));
  document.set("model", model);
  const auto session = elarge::core().open(
      elarge::configuration(document,
                            {"loader.dtype=bf16", "esurge.max_model_len=2048", "esurge.enable_prefix_caching=false"}),
      false);
  const server::ServedModel served = session->build_served_model(1);
  server::Server plain(serve_config(clients)), secure(serve_config(clients, &scratch));
  for (server::Server* one : {&plain, &secure}) one->start(), one->add(served), one->set_ready();
  const auto ids = [prompt](int client, int round) {
    std::vector<text::TokenId> out;
    for (int i = 0; i < prompt; ++i) out.push_back(3 + (client * 131 + round * 977 + i * 31 + i * i % 7) % 509);
    return out;
  };
  const auto engine = [&](int client, int round) {
    esurge::Request request;
    request.prompt = ids(client, round);
    request.sampling.temperature = 0;
    request.sampling.max_tokens = fresh;
    request.sampling.ignore_eos = true;
    request.sampling.output_kind = esurge::OutputKind::delta;
    request.sampling.return_token_ids = true;
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<double> first;
    bool finished = false;
    const auto begin = Clock::now();
    served.engine->add(std::move(request), [&](const esurge::RequestOutput& output) {
      const std::lock_guard lock(mutex);
      if (!first && output.num_generated_tokens > 0) first = seconds_since(begin);
      finished = output.finished;
      if (finished) changed.notify_one();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return finished; });
    return first.value_or(0);
  };
  const auto over = [&](const server::Server& server, SSL_CTX* context) {
    return [&ids, fresh, port = port_of(server), context](int client, int round) {
      std::string list;
      for (const text::TokenId id : ids(client, round)) list += (list.empty() ? "" : ",") + std::to_string(id);
      const auto begin = Clock::now();
      Client one(
          port, context,
          str(R"({"stream": true, "return_token_ids": true, "temperature": 0, "ignore_eos": true, "max_tokens": )",
              fresh, R"(, "prompt": [)", list, "]}"));
      std::string got;
      std::optional<double> first;
      while (got.find("data: [DONE]") == std::string::npos) {
        const std::string more = one.read();
        check(!more.empty(), "the answer broke off");
        got += more;
        // Random weights give tokens without text, so events are told by their ids.
        if (!first && got.find("\"token_ids\":[") != std::string::npos) first = seconds_since(begin);
      }
      check(first.has_value(), "no event had token ids");
      return *first;
    };
  };
  load(1, 1, 4, engine);  // packs the weights
  // The mean of all first tokens, less what the engine itself says of them.
  const auto measured = [&](const auto& ask) {
    const auto before = served.engine->metrics().first_token_seconds;
    Load out = load(clients, rounds, fresh, ask);
    const auto after = served.engine->metrics().first_token_seconds;
    out.outside_of_engine -= (after.sum() - before.sum()) / double(after.count() - before.count());
    return out;
  };
  std::map<std::string, std::vector<double>> ratios;
  for (int turn = 0; turn < turns; ++turn) {
    const Load alone = measured(engine), http = measured(over(plain, nullptr)), https = measured(over(secure, tls));
    ratios["tokens/s of HTTP over the engine's (target 0.97)"].push_back(http.tokens_per_second /
                                                                         alone.tokens_per_second);
    ratios["first token of HTTP over the engine's (limit 1.05)"].push_back(http.first_token / alone.first_token);
    ratios["tokens/s of HTTPS over HTTP (target 0.95)"].push_back(https.tokens_per_second / http.tokens_per_second);
    std::printf("outside of the engine: %.2f, %.2f and %.2f ms of a first token alone, over HTTP and over HTTPS\n",
                1e3 * alone.outside_of_engine, 1e3 * http.outside_of_engine, 1e3 * https.outside_of_engine);
    std::printf(
        "%d clients: engine alone %.1f tokens/s, first token %.3f s; HTTP %.1f: %.3f of it (target 0.97), first "
        "token %.3f s: %.3f (limit 1.05); HTTPS %.1f: %.3f of HTTP (target 0.95)\n",
        clients, alone.tokens_per_second, alone.first_token, http.tokens_per_second,
        http.tokens_per_second / alone.tokens_per_second, http.first_token, http.first_token / alone.first_token,
        https.tokens_per_second, https.tokens_per_second / http.tokens_per_second);
  }
  for (const auto& [what, all] : ratios)
    std::printf("%s: %.3f in the middle of %d turns\n", what.c_str(), spread(all).median, turns);
}

int main_of(int count, char** values) {
  const auto number = [&](const char* name, const char* otherwise) {
    return std::stoi(argument(count, values, name, otherwise));
  };
  SSL_CTX* const tls = SSL_CTX_new(TLS_client_method());
  const std::string row = argument(count, values, "row", "sockets");
  if (row == "sockets") sockets(number("streams", "1000"), number("events", "200"), number("rounds", "3"), tls);
  if (row == "engine")
    through_http(number("clients", "32"), number("prompt", "265"), number("new", "64"), number("rounds", "2"),
                 number("turns", "3"), tls);
  SSL_CTX_free(tls);
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  easydel::log::set_level(easydel::log::Level::warning);
  return easydel::bench::main_of(count, values);
}
