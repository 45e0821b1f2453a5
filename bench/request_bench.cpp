// Bodies of 256 KB as the server reads and checks them, against simdjson's own parse of the same bytes:
// request_bench [--rounds 200] [--row PART OF A NAME]. Memory is what is allocated at the peak.
#include <malloc.h>
#include <simdjson.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/server/chat_request.h"
#include "easydel/server/json_body.h"
#include "easydel/server/request_fields.h"
#include "easydel/server/text_request.h"
#include "measure.h"

namespace {

std::atomic<int64_t> allocated = 0, peak = 0;
std::atomic<bool> counting = false;  // not while time is measured, of which it would take a part

void* counted(void* at) {
  if (!at) throw std::bad_alloc();
  if (!counting.load(std::memory_order_relaxed)) return at;
  const int64_t now = allocated += int64_t(malloc_usable_size(at));
  for (int64_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
  return at;
}
void release(void* at) {
  if (at && counting.load(std::memory_order_relaxed)) allocated -= int64_t(malloc_usable_size(at));
  std::free(at);
}

}  // namespace

void* operator new(size_t size) { return counted(std::malloc(size)); }
void* operator new[](size_t size) { return counted(std::malloc(size)); }
void operator delete(void* at) noexcept { release(at); }
void operator delete[](void* at) noexcept { release(at); }
void operator delete(void* at, size_t) noexcept { release(at); }
void operator delete[](void* at, size_t) noexcept { release(at); }

namespace easydel::bench {
namespace {

constexpr size_t body_bytes = 256 << 10;

std::string chat_of(size_t message_bytes) {
  std::string out = R"({"model": "m", "temperature": 0.5, "max_tokens": 60, "messages": [)";
  const std::string prose = "The old \"prince\" looked at the sea,\nand said nothing for a long while. Caf\u00e9. ";
  for (bool first = true; out.size() < body_bytes; first = false) {
    std::string content;
    while (content.size() < message_bytes && out.size() + content.size() < body_bytes) content += prose;
    out += str(first ? "" : ", ", R"({"role": "user", "content": )", json_text(content), "}");
  }
  return out + "]}";
}

std::string ids() {
  std::string out = R"({"model": "m", "max_tokens": 60, "prompt": [1)";
  for (int i = 0; out.size() < body_bytes; ++i) out += "," + std::to_string(i * 7919 % 128000);
  return out + "]}";
}

double median_seconds(int rounds, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    work();
    seconds.push_back(seconds_since(begin));
  }
  return spread(seconds).median;
}

std::string chosen_row;

void measure_body(const char* name, const std::string& body, int rounds, const std::function<void()>& read) {
  if (std::string_view(name).find(chosen_row) == std::string_view::npos) return;
  const auto parse = [&body] {
    simdjson::dom::parser parser;
    check(parser.parse(body).error() == simdjson::SUCCESS, "the body is not JSON");
  };
  read(), parse();
  const double ours = median_seconds(rounds, read), theirs = median_seconds(rounds, parse);
  counting = true;
  const int64_t before = allocated;
  peak = before;
  read();
  counting = false;
  std::printf(
      "%s, %zu bytes: %.3f ms, simdjson alone %.3f ms: %.2f times (limit 3); memory %.2f times the body (limit 8)\n",
      name, body.size(), 1e3 * ours, 1e3 * theirs, ours / theirs, double(peak - before) / double(body.size()));
}

int main_of(int count, char** values) {
  const int rounds = std::stoi(argument(count, values, "rounds", "200"));
  chosen_row = argument(count, values, "row", "");
  std::vector<std::string> passed_over;
  for (const auto& [name, bytes] :
       {std::pair{"a chat of one message", body_bytes}, std::pair{"a chat of messages of 400 bytes", size_t(400)}}) {
    const std::string body = chat_of(bytes);
    measure_body(name, body, rounds, [&] {
      const auto request = server::read_request<server::ChatRequest>(server::read_value(body), {}, passed_over);
      check(!request.conversation.messages.items.empty(), "no messages");
    });
  }
  const std::string body = ids();
  measure_body("a completion of token ids", body, rounds, [&] {
    server::TokenLists tokens;
    const auto request =
        server::read_request<server::TextRequest>(server::read_value(body, "prompt", tokens), {}, passed_over);
    check(!tokens.lists.empty() && request.generation.max_tokens == 60, "no ids");
  });
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) { return easydel::bench::main_of(count, values); }
