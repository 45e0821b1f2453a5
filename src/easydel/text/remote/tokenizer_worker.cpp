#include "easydel/text/remote/tokenizer_worker.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "easydel/base/log.h"

namespace easydel::text {

TokenizerWorker::TokenizerWorker(std::shared_ptr<const Tokenizer> tokenizer, std::string_view address)
    : lines_(std::move(tokenizer)), listener_(parse_line_address(address, "--serve", true), "--serve") {}

TokenizerWorker::~TokenizerWorker() {
  for (Client& client : clients_) {
    ::shutdown(client.connection.socket(), SHUT_RDWR);
    client.thread.join();
  }
}

void TokenizerWorker::serve(Client& client) const {
  try {
    while (const auto line = client.connection.receive(std::nullopt))
      client.connection.send(lines_.answer(*line), std::nullopt);
  } catch (const ConnectionLost& lost) {
    log::warning("tokenize: a connection ", lost.what());
  }
  ::shutdown(client.connection.socket(), SHUT_RDWR);
  client.ended = true;
}

void TokenizerWorker::join_ended() {
  for (auto at = clients_.begin(); at != clients_.end();) {
    const auto next = std::next(at);
    if (at->ended) {
      at->thread.join();
      clients_.erase(at);
    }
    at = next;
  }
}

void TokenizerWorker::run(int stop) {
  for (;;) {
    std::array<pollfd, 2> watched = {pollfd{stop, POLLIN, 0}, pollfd{listener_.socket(), POLLIN, 0}};
    if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    if (watched[0].revents != 0) return;
    if (watched[1].revents == 0) continue;
    std::optional<LineConnection> connection = listener_.accept();
    join_ended();
    if (!connection) continue;
    if (clients_.size() >= max_connections) {
      log::warning("tokenize: a connection is refused: ", max_connections, " are open");
      continue;
    }
    Client& client = clients_.emplace_back(std::move(*connection));
    client.thread = std::thread([this, &client] { serve(client); });
  }
}

}  // namespace easydel::text
