#include "easydel/text/remote/remote_tokenizer.h"

#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "easydel/base/clock.h"
#include "easydel/base/document.h"
#include "easydel/text/remote/line_channel.h"
#include "easydel/text/remote/tokenize_lines.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

constexpr double connect_seconds = 1;
constexpr size_t bytes_per_second = 100'000;  // of a text, far below what a tokenizer does

Value integers(const auto& numbers) {
  Value out = Value::list();
  for (const auto each : numbers) out.items.push_back(Value::integer(int64_t(each)));
  return out;
}

[[noreturn]] void refuse_nonsense() { throw ConnectionLost("answers something else than what was asked"); }

const Value& member(const Value& of, std::string_view key) {
  const Value* const found = of.find(key);
  if (!found) refuse_nonsense();
  return *found;
}

std::string text_in(const Value& value) {
  if (!value.is_text()) refuse_nonsense();
  return value.scalar;
}

int64_t number_in(const Value& value, int64_t limit) {
  const auto number = value.as_int();
  if (!number || *number < 0 || *number >= limit) refuse_nonsense();
  return *number;
}

template <class T>
std::vector<T> numbers_in(const Value& list, int64_t limit) {
  if (!list.is_list()) refuse_nonsense();
  std::vector<T> out;
  out.reserve(list.items.size());
  for (const Value& item : list.items) out.push_back(T(number_in(item, limit)));
  return out;
}

// One of the two processes, with the connections that are free.
class Worker {
 public:
  Worker(std::string_view address, std::string key, std::string hash, const RemoteTokenizerOptions& options)
      : address_(parse_line_address(address, key)),
        key_(std::move(key)),
        hash_(std::move(hash)),
        answer_seconds_(options.answer_seconds) {
    const Clock::time_point begin = Clock::now();
    for (;;) try {
        free_.push_back(connected());
        return;
      } catch (const ConnectionLost& lost) {
        if (seconds_since(begin) >= options.startup_seconds)
          refuse(key_,
                 str("no tokenizer answers at ", place(), " within ", options.startup_seconds, " s: it ", lost.what()),
                 str("start one: easydel tokenize MODEL --serve ", place()));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
  }

  // What `read` makes of the answer. UserError: what the tokenizer refuses.
  template <class Read>
  auto ask(const Value& question, size_t bytes, const Read& read) const {
    const std::string line = to_json(question);
    try {
      LineConnection connection = take();
      const double seconds = answer_seconds_ + double(bytes / bytes_per_second);
      const Clock::time_point begin = Clock::now();
      try {
        const Value answer = asked(connection, line, seconds);
        if (const Value* const error = answer.find("error")) {
          give_back(std::move(connection));
          refuse("text", text_in(*error));
        }
        auto out = read(answer);
        give_back(std::move(connection));
        return out;
      } catch (const ConnectionLost&) {
        note_loss(seconds_since(begin) >= seconds);
        throw;
      }
    } catch (const ConnectionLost& lost) {
      throw TokenizerLost(key_, str("the tokenizer at ", place(), " ", lost.what()),
                          str("start it again: easydel tokenize MODEL --serve ", place()));
    }
  }

 private:
  std::string place() const { return address_.text(); }

  // ConnectionLost also if the answer is not the line of a worker.
  static Value asked(LineConnection& connection, const std::string& line, double seconds) {
    connection.send(line, seconds);
    const std::optional<std::string> answer = connection.receive(seconds);
    if (!answer) throw ConnectionLost("has ended");
    try {
      return parse_json(*answer, "answer");
    } catch (const UserError&) {
      throw ConnectionLost("answers with what is not JSON");
    }
  }

  LineConnection connected() const {
    LineConnection out = connect_to(address_, connect_seconds);
    Value question = Value::map();
    question.set("tokenizer_hash", Value::boolean(true));
    const Value answer = asked(out, to_json(question), answer_seconds_);
    const Value* const hash = answer.find("tokenizer_hash");
    if (!hash || !hash->is_text()) throw ConnectionLost("does not say the hash of its tokenizer");
    if (hash->scalar != hash_)
      throw TokenizerLost(key_, str("the tokenizer at ", place(), " is another one than the model's"),
                          str("start it with the model's: easydel tokenize MODEL --serve ", place()));
    return out;
  }

  // A free connection that is still open, or a new one.
  LineConnection take() const {
    {
      const std::lock_guard lock(mutex_);
      if (Clock::now() < hangs_until_) throw ConnectionLost(str("did not answer within ", answer_seconds_, " s"));
      while (!free_.empty()) {
        LineConnection out = std::move(free_.back());
        free_.pop_back();
        if (out.is_idle()) return out;
      }
    }
    return connected();
  }

  void give_back(LineConnection connection) const {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(connection));
  }

  void note_loss(bool hangs) const {
    const std::lock_guard lock(mutex_);
    free_.clear();
    if (hangs) hangs_until_ = Clock::now() + std::chrono::nanoseconds(int64_t(answer_seconds_ * 1e9));
  }

  const LineAddress address_;
  const std::string key_, hash_;
  const double answer_seconds_;
  mutable std::mutex mutex_;
  mutable std::vector<LineConnection> free_;
  mutable Clock::time_point hangs_until_ = {};
};

class RemoteTokenizer final : public Tokenizer {
 public:
  RemoteTokenizer(std::shared_ptr<const Tokenizer> own, const RemoteTokenizerOptions& options)
      : RemoteTokenizer(own, tokenizer_hash(*own), options) {}

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override {
    const std::string given = replace_invalid(text);
    Value line = question(given, options);
    line.set("only_ids", Value::boolean(true));
    return encoder_.ask(line, given.size(), [&](const Value& answer) { return ids_in(answer); });
  }
  Encoding encode_full(std::string_view text, const std::optional<std::string>& pair,
                       const EncodeOptions& options) const override {
    const std::string given = replace_invalid(text);
    Value line = question(given, options);
    if (pair) line.set("pair", Value::text(replace_invalid(*pair)));
    if (options.file_limits) line.set("overflowing", Value::boolean(true));
    return full(std::move(line), given.size() + (pair ? pair->size() : 0));
  }
  Encoding encode_with_breaks(std::string_view text, std::span<const size_t> breaks,
                              const EncodeOptions& options) const override {
    Value line = question(std::string(text), options);
    line.set("breaks", integers(breaks));
    return full(std::move(line), text.size());
  }
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens, std::optional<bool> clean_up,
                     bool time_stamps) const override {
    if (ids.empty()) return "";
    Value line = Value::map();
    line.set("ids", integers(ids));
    line.set("skip_special_tokens", Value::boolean(skip_special_tokens));
    if (clean_up) line.set("clean_up", Value::boolean(*clean_up));
    if (time_stamps) line.set("time_stamps", Value::boolean(true));
    return decoder_.ask(line, 4 * ids.size(), [](const Value& answer) { return text_in(member(answer, "text")); });
  }

  std::optional<std::string> bytes_of(TokenId id, TextPlace& place) const override { return own_->bytes_of(id, place); }
  int64_t vocabulary_size() const override { return own_->vocabulary_size(); }
  TokenId id_limit() const override { return own_->id_limit(); }
  std::optional<TokenId> id_of(std::string_view token) const override { return own_->id_of(token); }
  std::string token_of(TokenId id) const override { return own_->token_of(id); }
  bool is_special(TokenId id) const override { return own_->is_special(id); }
  std::optional<TokenId> bos_id() const override { return own_->bos_id(); }
  std::optional<TokenId> eos_id() const override { return own_->eos_id(); }
  std::optional<TokenId> pad_id() const override { return own_->pad_id(); }
  std::optional<TokenId> unk_id() const override { return own_->unk_id(); }
  std::optional<std::string> chat_template() const override { return own_->chat_template(); }
  bool chat_template_is_given() const override { return own_->chat_template_is_given(); }
  std::vector<TokenId> new_tokens() const override { return own_->new_tokens(); }
  const std::vector<std::filesystem::path>& files() const override { return own_->files(); }
  std::string as_json() const override { return own_->as_json(); }

 private:
  RemoteTokenizer(const std::shared_ptr<const Tokenizer>& own, const std::string& hash,
                  const RemoteTokenizerOptions& options)
      : own_(own),
        encoder_(options.encoder, "esurge.tokenizer_endpoint", hash, options),
        decoder_(options.decoder, "esurge.detokenizer_endpoint", hash, options) {}

  static Value question(std::string text, const EncodeOptions& options) {
    Value out = Value::map();
    out.set("text", Value::text(std::move(text)));
    out.set("add_special_tokens", Value::boolean(options.add_special_tokens));
    out.set("parse_special", Value::boolean(options.parse_special));
    out.set("file_limits", Value::boolean(options.file_limits));
    return out;
  }

  std::vector<TokenId> ids_in(const Value& answer) const {
    return numbers_in<TokenId>(member(answer, "ids"), own_->id_limit());
  }

  Encoding read_encoding(const Value& answer) const {
    Encoding out{.ids = ids_in(answer), .tokens = {}, .offsets = {}, .special_tokens_mask = {}, .type_ids = {}};
    for (const Value& token : member(answer, "tokens").items) out.tokens.push_back(text_in(token));
    for (const Value& pair : member(answer, "offsets").items) {
      const auto places = numbers_in<int64_t>(pair, INT64_MAX);
      if (places.size() != 2) refuse_nonsense();
      out.offsets.emplace_back(places[0], places[1]);
    }
    out.special_tokens_mask = numbers_in<uint8_t>(member(answer, "special_tokens_mask"), 2);
    out.type_ids = numbers_in<uint8_t>(member(answer, "type_ids"), 256);
    const size_t size = out.ids.size();
    if (out.tokens.size() != size || out.offsets.size() != size || out.special_tokens_mask.size() != size ||
        out.type_ids.size() != size)
      refuse_nonsense();
    if (const Value* const rest = answer.find("overflowing"))
      for (const Value& one : rest->items) out.overflowing.push_back(read_encoding(one));
    return out;
  }

  Encoding full(Value line, size_t bytes) const {
    line.set("masks", Value::boolean(true));
    return encoder_.ask(line, bytes, [&](const Value& answer) { return read_encoding(answer); });
  }

  const std::shared_ptr<const Tokenizer> own_;
  const Worker encoder_, decoder_;
};

}  // namespace

std::shared_ptr<const Tokenizer> remote_tokenizer(std::shared_ptr<const Tokenizer> own,
                                                  const RemoteTokenizerOptions& options) {
  return std::make_shared<RemoteTokenizer>(std::move(own), options);
}

}  // namespace easydel::text
