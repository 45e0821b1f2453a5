// A tokenizer in a process of its own, which others on this machine ask by lines of JSON.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "easydel/text/remote/line_channel.h"
#include "easydel/text/remote/tokenize_lines.h"

namespace easydel::text {

class TokenizerWorker {
 public:
  // UserError "--serve: ...": the address is not one, or cannot be listened on. Port 0: the system chooses.
  TokenizerWorker(std::shared_ptr<const Tokenizer> tokenizer, std::string_view address);
  ~TokenizerWorker();

  std::string address() const { return listener_.address().text(); }
  // Answers the lines of every connection, each on a thread of its own, until the descriptor `stop` is readable. A
  // connection that sends a line that is too long, or is one too many, is closed.
  void run(int stop);

  static constexpr size_t max_connections = 64;

 private:
  struct Client {
    explicit Client(LineConnection own) : connection(std::move(own)) {}
    LineConnection connection;
    std::atomic<bool> ended = false;
    std::thread thread = {};
  };
  void serve(Client& client) const;
  void join_ended();

  TokenizeLines lines_;
  LineListener listener_;
  std::list<Client> clients_;
};

}  // namespace easydel::text
