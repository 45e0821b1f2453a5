// `easydel tokenize` and `detokenize`.
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/cli/commands.h"
#include "easydel/hub/resolve.h"
#include "easydel/text/remote/tokenizer_worker.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/text/unicode.h"

namespace easydel::cli {

namespace {

int serve_tokenizer(const std::string& tokenizer, const std::string& address) {
  // Before there are threads, which would get the signals otherwise.
  sigset_t mask;
  sigemptyset(&mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&mask, signal);
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  const int stop = signalfd(-1, &mask, SFD_CLOEXEC);
  check(stop >= 0, "signalfd: ", std::strerror(errno));
  text::TokenizerWorker worker(text::Tokenizer::load(hub::resolve_tokenizer(tokenizer)), address);
  print(str("tokenizes at ", worker.address(), "\n"));
  worker.run(stop);
  close(stop);
  return 0;
}

}  // namespace

int run_tokenize(const TokenizeOptions& request) {
  if (request.serve && request.text) refuse("--serve", "takes no text", "send texts to its address");
  if (request.serve) return serve_tokenizer(request.tokenizer, *request.serve);
  const auto loaded = text::Tokenizer::load(hub::resolve_tokenizer(request.tokenizer));
  const std::string given = request.text ? *request.text : read_input("-");
  const text::EncodeOptions options{.add_special_tokens = !request.no_special};
  std::string out;
  if (!request.tokens) {
    for (const text::TokenId id : loaded->encode(given, options)) out += (out.empty() ? "" : " ") + std::to_string(id);
    return print(out + "\n"), 0;
  }
  const std::string whole = text::replace_invalid(given);
  const std::u32string characters = text::to_utf32(whole);  // offsets count characters
  const text::Encoding encoded = loaded->encode_full(whole, std::nullopt, options);
  for (size_t i = 0; i < encoded.ids.size(); ++i) {
    const auto [begin, end] = encoded.offsets[i];
    const auto part = std::u32string_view(characters).substr(size_t(begin), size_t(end - begin));
    out += str(encoded.ids[i], "\t", encoded.tokens[i], "\t", to_json(Value::text(text::to_utf8(part))), "\n");
  }
  return print(out), 0;
}

int run_detokenize(const std::string& tokenizer, const std::vector<int64_t>& ids, bool skip_special) {
  const auto loaded = text::Tokenizer::load(hub::resolve_tokenizer(tokenizer));
  std::vector<text::TokenId> narrow;
  for (const int64_t id : ids) {
    if (id < 0 || id > INT32_MAX || loaded->token_of(static_cast<text::TokenId>(id)).empty())
      refuse(std::to_string(id), "no such token", str("ids go from 0 to ", loaded->vocabulary_size() - 1));
    narrow.push_back(static_cast<text::TokenId>(id));
  }
  return print(loaded->decode(narrow, skip_special) + "\n"), 0;
}

}  // namespace easydel::cli
