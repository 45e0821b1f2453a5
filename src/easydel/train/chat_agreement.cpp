#include "easydel/train/chat_agreement.h"

#include <algorithm>
#include <optional>
#include <span>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/data/inform_reader.h"
#include "easydel/data/learn_rules.h"
#include "easydel/generation/generation_config.h"
#include "easydel/text/assistant_spans.h"
#include "easydel/text/render_chat.h"
#include "easydel/train/state_files.h"

namespace easydel::train {
namespace {

// Rows that are no conversations are passed over, up to a limit.
constexpr int64_t conversations_read = 100, rows_read = 1000;

// The messages of a row whose answers are learned.
struct Conversation {
  Value messages;
  size_t first_answer = 1;  // no answer is before it; the first message of all has nothing that it answers
};

Conversation conversation_of(const data::TypedRow& row) {
  using enum data::RowKind;
  const Value& answer = row.kind == preference ? row.chosen : row.completion;
  if (row.kind == messages || row.kind == text) return {data::without_part_marks(row.text)};
  if (row.kind != preference && row.kind != prompt_completion && row.kind != unpaired) return {};
  Conversation out{row.prompt, std::max<size_t>(1, row.prompt.items.size())};
  out.messages.items.insert(out.messages.items.end(), answer.items.begin(), answer.items.end());
  out.messages = data::without_part_marks(out.messages);
  return out;
}

// The first place where what is sent differs from the beginning of what is trained.
std::optional<size_t> difference(std::span<const int32_t> sent, std::span<const int32_t> trained) {
  const auto [one, other] = std::ranges::mismatch(sent, trained);
  if (one == sent.end()) return std::nullopt;
  return size_t(one - sent.begin());
}

class Checker {
 public:
  explicit Checker(const std::shared_ptr<const text::Tokenizer>& tokenizer)
      : tokenizer_(*tokenizer), renderer_(tokenizer) {}

  // Nothing: chat sends what is trained.
  std::optional<std::string> check(const data::TypedRow& row, std::span<const int32_t> trained) const {
    const Conversation conversation = conversation_of(row);
    const std::vector<Value>& all = conversation.messages.items;
    for (size_t i = conversation.first_answer; i < all.size(); ++i) {
      if (!text::is_assistant(all[i])) continue;
      Value asked = Value::list();
      asked.items.assign(all.begin(), all.begin() + std::ptrdiff_t(i));
      std::vector<int32_t> sent;
      try {
        sent = renderer_.ids(asked, {row.tools, true, {}});
      } catch (const UserError&) {  // chat refuses it, too
        continue;
      }
      if (const auto at = difference(sent, trained))
        return str("token ", *at, " is '", tokenizer_.token_of(sent[*at]), "' in chat and ",
                   *at < trained.size() ? "'" + tokenizer_.token_of(trained[*at]) + "'" : std::string("missing"),
                   " in training");
    }
    return std::nullopt;
  }

 private:
  const text::Tokenizer& tokenizer_;
  text::ChatRenderer renderer_;
};

}  // namespace

std::vector<int32_t> end_tokens(const std::filesystem::path& model_folder, const text::Tokenizer& tokenizer) {
  std::vector<int32_t> out;
  try {
    for (const int64_t end : generation::generation_config(model_folder).eos_token_id) out.push_back(int32_t(end));
  } catch (const UserError&) {  // who generates is told
  }
  if (const auto end = tokenizer.eos_id(); end && out.empty()) out.push_back(*end);
  return out;
}

text::ChatFingerprint chat_fingerprint(const std::filesystem::path& model_folder, const text::Tokenizer& tokenizer) {
  return text::chat_fingerprint(tokenizer, end_tokens(model_folder, tokenizer));
}

std::optional<text::ChatFingerprint> saved_chat_fingerprint(const std::filesystem::path& checkpoint) {
  const std::filesystem::path adapter = adapter_folder(checkpoint);
  return text::load_chat_fingerprint(files::is_folder(adapter) ? adapter : checkpoint);
}

std::string chat_disagreement(const data::DatasetOptions& options, const data::Prepare& prepare,
                              const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  if (!tokenizer->chat_template()) return "";
  const Checker checker(tokenizer);
  const data::Prepare none = [](const data::TypedRow&) { return data::Prepared(); };
  int64_t conversations = 0, different = 0;
  std::string first;
  for (size_t i = 0; i < options.informs.size(); ++i) {
    int64_t rows = 0;
    data::InformReader(options, i, none).read([&](data::PreparedRow& row) {
      if (conversations == conversations_read || ++rows > rows_read) return false;
      if (row.error || !row.row.conversational) return true;
      try {
        const data::Prepared prepared = prepare(row.row);
        if (!prepared.example || prepared.cut_tokens > 0) return true;
        ++conversations;
        const auto trained = std::span(prepared.example->tokens).first(size_t(prepared.example->lengths[0]));
        if (const auto found = checker.check(row.row, trained); found && different++ == 0)
          first = row.row.where + ", where " + *found;
      } catch (const UserError&) {  // a bad row, which is told of or skipped where it is read
      }
      return true;
    });
  }
  if (different == 0) return "";
  return str(different, " of the first ", counted(conversations, "conversation"),
             different == 1 ? " begins in training with other tokens than `chat` sends: "
                            : " begin in training with other tokens than `chat` sends; the first is ",
             first);
}

}  // namespace easydel::train
