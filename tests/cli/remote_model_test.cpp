// `generate` and `chat` with --server, against a server whose answers the test writes.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::run_program;

std::string events(const std::vector<std::string>& documents) {
  std::string out = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
  for (const std::string& document : documents) out += "data: " + document + "\n\n";
  return out + "data: [DONE]\n\n";
}

// Gives each request the next of its answers.
class ScriptedServer {
 public:
  // `socket_path`: of a Unix socket; empty: a port of this machine.
  explicit ScriptedServer(std::vector<std::string> answers, const std::string& socket_path = "") {
    if (socket_path.empty()) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      socklen_t size = sizeof address;
      listen_on(AF_INET, reinterpret_cast<sockaddr*>(&address), size);
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
      url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    } else {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
      listen_on(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof address);
      url = "unix:" + socket_path;
    }
    thread_ = std::jthread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) serve(answer);
    });
  }
  ~ScriptedServer() {
    ::shutdown(socket_, SHUT_RDWR);
    ::close(socket_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::vector<Value> bodies() const {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  std::string url;

 private:
  void listen_on(int family, const sockaddr* address, socklen_t size) {
    socket_ = ::socket(family, SOCK_STREAM, 0);
    ASSERT_EQ(::bind(socket_, address, size), 0);
    ASSERT_EQ(::listen(socket_, 8), 0);
  }
  void serve(const std::string& answer) {
    const int client = ::accept(socket_, nullptr, nullptr);
    if (client < 0) return;
    std::string got;
    const auto is_complete = [&got] {
      const size_t head = got.find("\r\n\r\n"), length = got.find("Content-Length: ");
      return head != std::string::npos && got.size() >= head + 4 + std::stoul(got.substr(length + 16));
    };
    char buffer[4096];
    for (ssize_t n = 1; n > 0 && !is_complete();)
      if ((n = ::recv(client, buffer, sizeof buffer, 0)) > 0) got.append(buffer, size_t(n));
    {
      const std::lock_guard lock(mutex_);
      bodies_.push_back(parse_json(got.substr(got.find("\r\n\r\n") + 4)));
    }
    ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::close(client);
  }

  int socket_ = -1;
  mutable std::mutex mutex_;
  std::vector<Value> bodies_;
  std::jthread thread_;  // ends before what it uses
};

std::string delta(int index, const std::string& members, const std::string& more = "") {
  return str(R"({"choices": [{"index": )", index, R"(, "delta": {)", members, "}", more, "}]}");
}
const std::string usage = R"({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 5}})";

std::vector<std::string> thinking_answer(const char* name) {
  return {delta(0, R"("role": "assistant", "content": "")"),
          delta(0, str("\"", name, R"(": "Two and")")),
          delta(0, str("\"", name, R"(": " two.")")),
          delta(0, R"("content": "It is ")"),
          delta(0, R"("content": "four.")", R"(, "finish_reason": "stop")"),
          usage};
}

TEST(RemoteModel, ShowsTheReasoningBeforeTheAnswer) {
  for (const char* const name : {"reasoning_content", "reasoning"}) {
    const ScriptedServer server({events(thinking_answer(name)), events(thinking_answer(name))});
    const auto ran = run_program({"generate", "--server", server.url, "--chat", "-p", "2+2?"});
    EXPECT_EQ(ran.out, "> 2+2?\nTwo and two.\n\nIt is four.\n") << ran.err;
    const auto line = run_program({"generate", "--server", server.url, "--chat", "-p", "2+2?", "--jsonl"});
    ASSERT_EQ(line.status, 0) << line.err;
    EXPECT_NE(line.out.find(R"("reasoning": "Two and two.", "text": "It is four.")"), std::string::npos) << line.out;
  }
}

TEST(RemoteModel, KeepsReasoningOutOfTheConversation) {
  const ScriptedServer server({events(thinking_answer("reasoning_content")), events(thinking_answer("reasoning"))});
  const auto ran = run_program({"chat", "--server", server.url}, {.input = "2+2?\nSure?\n"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "Two and two.\n\nIt is four.\nTwo and two.\n\nIt is four.\n");
  ASSERT_EQ(server.bodies().size(), 2);
  EXPECT_EQ(to_json(*server.bodies()[1].find("messages")),
            R"([{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "It is four."}, )"
            R"({"role": "user", "content": "Sure?"}])");
}

std::vector<int64_t> new_tokens(const std::string& lines) {
  std::vector<int64_t> out;
  std::string rest = lines;
  for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
    const Value line = parse_json(rest.substr(0, end));
    const Value* const count = line.find("new_tokens");
    out.push_back(count ? count->as_int().value_or(-2) : -1);
  }
  return out;
}

std::vector<std::string> two_answers(bool ids) {
  const auto with = [ids](const char* list) { return ids ? str(R"(, "token_ids": )", list) : ""; };
  return {delta(0, R"("content": "a")", with("[5]")), delta(1, R"("content": "bc")", with("[6, 7, 8]")),
          delta(0, "", with("[9]") + R"(, "finish_reason": "stop")"), delta(1, "", R"(, "finish_reason": "length")"),
          usage};
}

TEST(RemoteModel, CountsTheTokensOfEachOfSeveralAnswers) {
  const std::vector<std::string> words = {"-p", "x", "--chat", "--jsonl", "--num-return-sequences", "2"};
  const auto ask = [&words](const ScriptedServer& server) {
    std::vector<std::string> all = {"generate", "--server", server.url};
    all.insert(all.end(), words.begin(), words.end());
    return run_program(all);
  };
  const ScriptedServer server({events(two_answers(true))});
  EXPECT_EQ(new_tokens(ask(server).out), (std::vector<int64_t>{2, 3}));
  // A server that does not know the member is asked again without it.
  const std::string refusal = R"({"error": {"message": "Unrecognized request argument: return_token_ids"}})";
  const ScriptedServer strict({"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: " +
                                   std::to_string(refusal.size()) + "\r\n\r\n" + refusal,
                               events(two_answers(false))});
  EXPECT_EQ(new_tokens(ask(strict).out), (std::vector<int64_t>{-1, -1}));
  ASSERT_EQ(strict.bodies().size(), 2);
  EXPECT_TRUE(strict.bodies()[0].find("return_token_ids"));
  EXPECT_FALSE(strict.bodies()[1].find("return_token_ids"));
}

TEST(RemoteModel, AsksThroughAUnixSocket) {
  const test::TemporaryFolder folder;
  const ScriptedServer server({events({delta(0, R"("content": "Hello")", R"(, "finish_reason": "stop")"), usage})},
                              (folder / "s").string());
  EXPECT_EQ(run_program({"chat", "--server", server.url}, {.input = "Hi\n"}).out, "Hello\n");
  EXPECT_EQ(run_program({"generate", "--server", "unix:", "-p", "a"}).err,
            "--server: 'unix:' names no socket\n    such as unix:/run/easydel.sock\n");
  const std::string missing = (folder / "missing").string();
  const auto ran = run_program({"generate", "--server", "unix:" + missing, "-p", "a"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("is the server running?"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace easydel
