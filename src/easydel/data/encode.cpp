#include "easydel/data/encode.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/log.h"

namespace easydel::data {
namespace {

size_t common_prefix(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return size_t(std::mismatch(a.begin(), a.begin() + std::min(a.size(), b.size()), b.begin()).first - a.begin());
}

std::vector<int32_t> joined(std::vector<int32_t> first, const std::vector<int32_t>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Value joined(const Value& first, const Value& second) {
  Value out = first;
  out.items.insert(out.items.end(), second.items.begin(), second.items.end());
  return out;
}

const std::string& text_of_prompt(const TypedRow& row) {
  return row.instruction_text.empty() ? row.prompt.scalar : row.instruction_text;
}

// Of a text, or of the one message that stands for it.
const std::string& text_of(const Value& answer) {
  return answer.is_list() ? answer.items.at(0).find("content")->scalar : answer.scalar;
}

}  // namespace

Encoder::Encoder(std::shared_ptr<const text::Tokenizer> tokenizer, EncoderOptions options)
    : tokenizer_(std::move(tokenizer)), options_(options) {
  check(tokenizer_, "an encoder without a tokenizer");
  const auto eos = options_.eos ? options_.eos : tokenizer_->eos_id();
  if (!options_.append_eos) return;
  if (eos) {
    eos_text_ = tokenizer_->token_of(*eos);
    if (eos_text_.empty())
      refuse("tokenizer", str("there is no token ", *eos, " to end texts with"), "see mixture.pack_eos_token_id");
  } else {
    log::warning("the tokenizer has no EOS token: texts will not end with one, and the model will not learn to stop");
  }
}

const text::ChatRenderer& Encoder::chat() const {
  std::call_once(chat_once_, [this] { chat_ = std::make_unique<const text::ChatRenderer>(tokenizer_); });
  return *chat_;
}

bool Encoder::as_conversation(const TypedRow& row) const {
  return row.conversational && (row.instruction_text.empty() || tokenizer_->chat_template());
}

std::string Encoder::ended(const std::string& text) const {
  return eos_text_.empty() || text.ends_with(eos_text_) ? text : text + eos_text_;
}

std::vector<int32_t> Encoder::plain(const std::string& text) const {
  auto ids = tokenizer_->encode(text, {.add_special_tokens = options_.add_special_tokens});
  // If the text already begins with BOS and the tokenizer adds it, there would be two.
  const auto bos = tokenizer_->bos_id();
  if (bos && ids.size() > 1 && ids[0] == *bos && ids[1] == *bos) ids.erase(ids.begin());
  return ids;
}

Encoded Encoder::conversation(const Value& messages, const TypedRow& row, bool generation_prompt, bool mask) const {
  const text::ChatOptions options{row.tools, generation_prompt, row.template_arguments};
  const text::ChatRenderer& renderer = chat();
  Encoded out;
  try {
    if (!mask) {
      out.ids = renderer.ids(messages, options);
      return out;
    }
    text::RenderedChat rendered = renderer.with_mask(messages, options);
    out.ids = std::move(rendered.ids);
    out.assistant = std::move(rendered.assistant_mask);
    out.masks_answer = std::ranges::count_if(rendered.assistant_spans, [](auto& span) {
                         return span.first < span.second;
                       }) < std::ranges::count_if(messages.items, text::is_assistant);
  } catch (const UserError& error) {
    refuse(row.where, error.headline(), error.remedy);
  }
  if (std::find(out.assistant.begin(), out.assistant.end(), 1) == out.assistant.end())
    refuse(row.where,
           "this conversation has no assistant message, so there is nothing to train on with assistant_only_loss",
           "drop the row, or set trainer.assistant_only_loss: false");
  return out;
}

Encoded Encoder::learned_conversation(const Value& messages, const TypedRow& row) const {
  const auto at_row = [&](const auto& action) {
    try {
      return action();
    } catch (const UserError& error) {
      refuse(row.where, error.headline(), error.remedy);
    }
  };
  if (!row.learn && !at_row([&] { return has_marks(messages); }))
    return conversation(messages, row, false, options_.assistant_mask);
  const text::ChatRenderer& renderer = chat();
  return at_row([&]() -> Encoded {
    const text::ChatOptions options{row.tools, false, row.template_arguments};
    const text::RenderedTurns turns = renderer.with_turns(without_part_marks(messages), options);
    const bool only_turns = row.learn || options_.assistant_mask;
    LearnedTokens learned = learned_tokens(messages, turns, row.learn ? *row.learn : LearnRules(), only_turns,
                                           [&](const Value& changed) { return renderer.text(changed, options); });
    Encoded out{turns.ids, 0, std::move(learned.learn), std::move(learned.weights)};
    out.masks_answer = learned.masks_turn;
    return out;
  });
}

// The tokens of each part by itself, without special tokens, as Axolotl's input_output.
Encoded Encoder::segments(const TypedRow& row) const {
  Encoded out;
  for (const Value& part : row.segments.items) {
    const auto ids = tokenizer_->encode(part.find("text")->scalar, {.add_special_tokens = false});
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.assistant.resize(out.ids.size(), *part.find("label")->as_bool());
  }
  return out;
}

void Encoder::note_parting(const std::vector<int32_t>& prompt, size_t same) const {
  if (same == prompt.size() || parting_noted_.exchange(true)) return;
  const std::vector<int32_t> rest(prompt.begin() + static_cast<std::ptrdiff_t>(same), prompt.end());
  log::warning(
      "the tokens of a prompt are not the first tokens of prompt and answer; the answer begins where they differ, and "
      "this end of the prompt is left out: '",
      tokenizer_->decode(rest, false), "' (reported once; end prompts at a token boundary)");
}

Encoded Encoder::encode(const TypedRow& row) const {
  switch (row.kind) {
    case RowKind::text:
      if (!row.segments.is_null()) return segments(row);
      if (!row.conversational) return {plain(ended(row.text.scalar)), 0, {}, {}};
      return learned_conversation(row.text, row);
    case RowKind::messages:
      if (!row.conversational) refuse(row.where, "messages is not a list of messages with role and content");
      return learned_conversation(row.text, row);
    case RowKind::prompt_completion:
    case RowKind::unpaired: {
      std::vector<int32_t> prompt;
      Encoded out;
      if (row.answers)
        return {joined(row.answers->prompt, row.answers->completion), int64_t(row.answers->prompt.size()), {}, {}};
      if (as_conversation(row)) {
        prompt = conversation(row.prompt, row, true, false).ids;
        out = learned_conversation(joined(row.prompt, row.completion), row);
        out.masks_answer = false;  // what the prompt says is not an answer
      } else {
        prompt = plain(text_of_prompt(row));
        out.ids = plain(text_of_prompt(row) + ended(text_of(row.completion)));
      }
      const size_t same = common_prefix(prompt, out.ids);
      note_parting(prompt, same);
      out.prompt = int64_t(same);
      out.merges = same < prompt.size();
      return out;
    }
    default:
      break;
  }
  refuse(row.where,
         str("a row of kind ", name_of(row.kind),
             row.kind == RowKind::tokens       ? " has no text"
             : row.kind == RowKind::preference ? " has two answers"
                                               : " has no text with an answer"),
         "give " + fields_of({RowKind::text, RowKind::messages, RowKind::prompt_completion}));
}

std::vector<int32_t> Encoder::encode_prompt(const TypedRow& row) const {
  if (row.answers) return row.answers->prompt;
  return as_conversation(row) ? conversation(row.prompt, row, true, false).ids : plain(text_of_prompt(row));
}

EncodedPair Encoder::encode_pair(const TypedRow& row, bool with_reference) const {
  if (row.kind != RowKind::preference)
    refuse(row.where, str("a row of kind ", name_of(row.kind), " has no pair of answers"),
           "give the fields prompt, chosen and rejected");
  if (with_reference && (row.answers ? row.answers->reference.empty() : row.reference.is_null()))
    refuse(row.where, "the row has no field 'reference', the gold answer",
           "give prompt, chosen, rejected and reference");
  if (row.answers) return {row.answers->prompt, row.answers->chosen, row.answers->rejected, row.answers->reference};
  EncodedPair out{encode_prompt(row), {}, {}, {}};
  std::vector<std::pair<const Value*, std::vector<int32_t>*>> answers{{&row.chosen, &out.chosen},
                                                                      {&row.rejected, &out.rejected}};
  if (with_reference) answers.emplace_back(&row.reference, &out.reference);
  size_t same = out.prompt.size();
  for (const auto& [answer, ids] : answers) {
    *ids = as_conversation(row) ? conversation(joined(row.prompt, *answer), row, false, false).ids
                                : plain(text_of_prompt(row) + ended(text_of(*answer)));
    same = std::min(same, common_prefix(out.prompt, *ids));
  }
  note_parting(out.prompt, same);
  out.merges = same < out.prompt.size();
  out.prompt.resize(same);
  for (const auto& [answer, ids] : answers) ids->erase(ids->begin(), ids->begin() + static_cast<std::ptrdiff_t>(same));
  return out;
}

std::array<std::vector<int32_t>, 2> Encoder::encode_whole_pair(const TypedRow& row) const {
  if (row.answers)
    return {joined(row.answers->prompt, row.answers->chosen), joined(row.answers->prompt, row.answers->rejected)};
  const auto whole = [&](const Value& answer) {
    return as_conversation(row) ? conversation(joined(row.prompt, answer), row, false, false).ids
                                : plain(text_of_prompt(row) + ended(text_of(answer)));
  };
  return {whole(row.chosen), whole(row.rejected)};
}

std::string Encoder::rendered(const Value& messages, const TypedRow& row, bool generation_prompt) const {
  try {
    return chat().text(messages, {row.tools, generation_prompt, row.template_arguments});
  } catch (const UserError& error) {
    refuse(row.where, error.headline(), error.remedy);
  }
}

std::vector<SeparateAnswer> Encoder::encode_separately(const TypedRow& row) const {
  if (row.answers) {
    std::vector<SeparateAnswer> ready{{row.answers->prompt, row.answers->completion, true}};
    if (row.kind == RowKind::preference)
      ready = {{row.answers->prompt, row.answers->chosen, true}, {row.answers->prompt, row.answers->rejected, true}};
    return ready;
  }
  std::vector<const Value*> answers{&row.chosen, &row.rejected};
  if (row.kind != RowKind::preference) answers = {&row.completion};
  std::string prompt;
  std::vector<std::string> texts;
  if (as_conversation(row)) {
    prompt = rendered(row.prompt, row, true);
    for (const Value* answer : answers) texts.push_back(rendered(joined(row.prompt, *answer), row, false));
    // Templates may write something after the prompt that is not there if an answer follows.
    for (const std::string& whole : texts) {
      auto same = size_t(
          std::mismatch(prompt.begin(), prompt.begin() + std::min(prompt.size(), whole.size()), whole.begin()).first -
          prompt.begin());
      while (same > 0 && same < prompt.size() && (prompt[same] & 0xC0) == 0x80) --same;  // not inside a character
      prompt.resize(same);
    }
    for (std::string& whole : texts) whole.erase(0, prompt.size());
  } else {
    prompt = text_of_prompt(row);
    for (const Value* answer : answers) texts.push_back(text_of(*answer));
  }
  const auto ids_of = [&](const std::string& text) { return tokenizer_->encode(text, {.add_special_tokens = false}); };
  const std::vector<int32_t> alone = ids_of(prompt);
  std::vector<SeparateAnswer> out;
  for (const std::string& text : texts) {
    const std::vector<int32_t> whole = ids_of(prompt + text);
    size_t at = std::min(alone.size(), whole.size());
    const bool merges = common_prefix(alone, whole) < alone.size();
    if (at > 0 && merges) --at;
    const auto middle = whole.begin() + static_cast<std::ptrdiff_t>(at);
    out.push_back({{whole.begin(), middle}, {middle, whole.end()}, false, merges});
  }
  return out;
}

void Encoder::add_ends(SeparateAnswer& one) const {
  if (one.ready) return;
  if (const auto bos = tokenizer_->bos_id(); bos && (one.prompt.empty() || one.prompt.front() != *bos))
    one.prompt.insert(one.prompt.begin(), *bos);
  if (const auto eos = tokenizer_->eos_id(); eos && (one.answer.empty() || one.answer.back() != *eos))
    one.answer.push_back(*eos);
}

int64_t Encoder::missing_ends(const SeparateAnswer& one) const {
  if (one.ready) return 0;
  const auto bos = tokenizer_->bos_id(), eos = tokenizer_->eos_id();
  return int64_t(!bos || one.prompt.empty() || one.prompt.front() != *bos) +
         int64_t(!eos || one.answer.empty() || one.answer.back() != *eos);
}

}  // namespace easydel::data
