#include "easydel/esurge/step_message.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "easydel/base/error.h"
#include "easydel/esurge/message_bytes.h"

namespace easydel::esurge {
namespace {

constexpr std::string_view start_kind = "easydel start 2", step_kind = "easydel step 2", reply_kind = "easydel reply 2",
                           rows_kind = "easydel rows 2";
constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

void write(MessageWriter& to, std::span<const PageOp> ops) {
  to.number(int64_t(ops.size()));
  for (const PageOp& op : ops) {
    to.number(int64_t(op.kind));
    to.number(int64_t(op.group));
    to.number(int64_t(op.from));
    to.number(int64_t(op.to));
    to.number(op.rows);
  }
}

std::vector<PageOp> read_ops(MessageReader& from, const StepBounds& bounds) {
  std::vector<PageOp> out(from.count(5 * sizeof(int64_t)));
  for (PageOp& op : out) {
    op.kind = PageOp::Kind(from.between(0, int64_t(PageOp::Kind::release), "a kind of page operation"));
    op.group = int(from.between(0, int64_t(bounds.ids.size()) - 1, "a group of layers"));
    const int64_t ids = bounds.ids[size_t(op.group)];
    op.from = int32_t(from.between(op.kind == PageOp::Kind::copy ? 0 : -1, ids - 1, "a page"));
    op.to = int32_t(from.between(0, ids - 1, "a page"));
    op.rows = from.between(0, bounds.layout.page_size, "a number of rows");
  }
  return out;
}

void write(MessageWriter& to, const std::vector<TokenId>& tokens) {
  to.number(int64_t(tokens.size()));
  for (const TokenId token : tokens) to.number(int64_t(token));
}

std::vector<TokenId> read_tokens(MessageReader& from, const StepBounds& bounds) {
  std::vector<TokenId> out(from.count(sizeof(int64_t)));
  for (TokenId& token : out) token = TokenId(from.between(0, bounds.vocabulary - 1, "a token"));
  return out;
}

void write(MessageWriter& to, const RunSequence& run) {
  to.number(run.begin);
  to.number(run.prompt);
  to.number(run.known);
  to.number(run.draws);
  to.number(run.scored_from);
  to.number(run.part);
  write(to, run.tokens);
  to.number(int64_t(run.tables.size()));
  for (const std::vector<int32_t>& table : run.tables) {
    to.number(int64_t(table.size()));
    for (const int32_t page : table) to.number(int64_t(page));
  }
}

RunSequence read_sequence(MessageReader& from, const StepBounds& bounds) {
  RunSequence run;
  run.begin = from.between(0, int64_t(1) << 40, "a position");
  run.prompt = from.between(0, unlimited, "a prompt's length");
  run.known = from.between(0, unlimited, "a sequence's length");
  run.draws = from.between(0, unlimited, "a number of draws");
  run.scored_from = from.between(0, unlimited, "a position");
  run.part = from.between(0, unlimited, "a data part");
  run.tokens = read_tokens(from, bounds);
  if (run.tokens.empty()) refuse_message("a sequence has no tokens");
  if (run.draws > int64_t(run.tokens.size()))
    refuse_message(str(run.draws, " draws of ", run.tokens.size(), " tokens"));
  if (const size_t tables = from.count(sizeof(int64_t)); tables != bounds.ids.size())
    refuse_message(str(tables, " page tables for ", bounds.ids.size(), " groups of layers"));
  const int64_t end = run.begin + int64_t(run.tokens.size());
  for (size_t g = 0; g < bounds.ids.size(); ++g) {
    std::vector<int32_t>& table = run.tables.emplace_back(from.count(sizeof(int64_t)));
    for (int32_t& page : table) page = int32_t(from.between(-1, bounds.ids[g] - 1, "a page"));
    const bool states = bounds.layout.groups[g].kind == CacheGroup::Kind::state;
    const int64_t pages = states ? 1 : bounds.layout.pages_of(end);
    if (int64_t(table.size()) < pages || table[size_t(pages - 1)] < 0)
      refuse_message(str("a page table of ", table.size(), " pages for ", end, " tokens"));
  }
  return run;
}

void write(MessageWriter& to, const std::vector<uint64_t>& numbers) {
  to.number(int64_t(numbers.size()));
  for (const uint64_t number : numbers) to.number(number);
}

std::vector<uint64_t> read_numbers(MessageReader& from) {
  std::vector<uint64_t> out(from.count(sizeof(uint64_t)));
  for (uint64_t& number : out) number = from.number<uint64_t>();
  return out;
}

void write(MessageWriter& to, const SharedParts& parts) {
  to.number(parts.adapter);
  to.number(parts.text);
  if (parts.text == 0) return;
  write(to, parts.ids);
  to.text({reinterpret_cast<const char*>(parts.asked.type_ids.data()), parts.asked.type_ids.size()});
  to.number(parts.asked.prompt_tokens);
}

SharedParts read_shared(MessageReader& from, const StepBounds& bounds, const RunSequence& run) {
  SharedParts out;
  out.adapter = from.number<uint64_t>();
  out.text = from.number<uint64_t>();
  if (out.text == 0) return out;
  out.ids = read_tokens(from, bounds);
  if (run.begin + int64_t(run.tokens.size()) > int64_t(out.ids.size()))
    refuse_message(str("a text of ", out.ids.size(), " tokens has more of them"));
  const std::string_view types = from.text();
  out.asked.type_ids.assign(types.begin(), types.end());
  if (!types.empty() && types.size() != out.ids.size())
    refuse_message(str(types.size(), " type ids for ", out.ids.size(), " tokens"));
  out.asked.prompt_tokens = from.between(0, unlimited, "a prompt's length");
  return out;
}

[[noreturn]] void refuse_difference(const std::string& what) {
  refuse("esurge", "the ranks do not compute the same: " + what,
         "give every rank the same model and the same configuration");
}

}  // namespace

std::string encode(const StartMessage& message) {
  MessageWriter to(start_kind);
  const ModelFacts& facts = message.facts;
  to.number(facts.layout.page_size);
  to.number(int64_t(facts.layout.roles_matter));
  to.number(int64_t(facts.layout.groups.size()));
  for (const CacheGroup& group : facts.layout.groups) {
    to.number(int64_t(group.kind));
    to.number(group.page_bytes);
    to.number(group.span);
  }
  to.number(facts.vocabulary);
  to.number(facts.max_positions);
  to.number(facts.restart_length);
  to.number(facts.turning_length);
  to.text(facts.cache_format);
  to.text(facts.order);
  to.number(int64_t(facts.whole_texts));
  to.number(message.budget_bytes);
  return to.finish();
}

StartMessage decode_start(std::string_view bytes) {
  MessageReader from(bytes, start_kind);
  StartMessage out;
  ModelFacts& facts = out.facts;
  facts.layout.page_size = from.between(1, 4096, "a page's size");
  facts.layout.roles_matter = from.between(0, 1, "a flag") != 0;
  facts.layout.groups.resize(from.count(3 * sizeof(int64_t)));
  for (CacheGroup& group : facts.layout.groups) {
    group.kind = CacheGroup::Kind(from.between(0, int64_t(CacheGroup::Kind::state), "a kind of layers"));
    group.page_bytes = from.between(1, unlimited, "a page's bytes");
    group.span = from.between(0, unlimited, "a span");
  }
  facts.vocabulary = from.between(1, std::numeric_limits<int32_t>::max(), "a vocabulary's size");
  facts.max_positions = from.between(0, unlimited, "a number of positions");
  facts.restart_length = from.between(0, unlimited, "a length");
  facts.turning_length = from.between(0, unlimited, "a length");
  facts.cache_format = from.text();
  facts.order = from.text();
  facts.whole_texts = from.between(0, 1, "a flag") != 0;
  out.budget_bytes = from.between(0, unlimited, "a budget");
  from.finish();
  return out;
}

void refuse_other_facts(const ModelFacts& first_rank, const ModelFacts& other, const std::string& other_rank) {
  const auto compare = [&](const char* what, const auto& first, const auto& own) {
    if (first != own) refuse_difference(str(what, " is ", first, " on the first rank, ", own, " on ", other_rank));
  };
  compare("the vocabulary", first_rank.vocabulary, other.vocabulary);
  compare("esurge.page_size", first_rank.layout.page_size, other.layout.page_size);
  compare("the number of groups of layers", first_rank.layout.groups.size(), other.layout.groups.size());
  compare("the format of keys and values", first_rank.cache_format, other.cache_format);
  compare("the order of additions", first_rank.order, other.order);
  if (first_rank != other) refuse_difference(str("layers of ", other_rank, " keep other keys and values"));
}

std::string encode_step(int64_t number, std::span<const PageOp> before, std::span<const RunSequence> sequences,
                        std::span<const PageOp> after, const StepShared& shared) {
  check(shared.of_sequences.empty() || shared.of_sequences.size() == sequences.size(),
        "a step's message: ", shared.of_sequences.size(), " shared parts of ", sequences.size(), " sequences");
  MessageWriter to(step_kind);
  to.number(number);
  write(to, before);
  to.number(int64_t(sequences.size()));
  for (const RunSequence& run : sequences) write(to, run);
  write(to, after);
  to.number(int64_t(!shared.of_sequences.empty()));
  for (const SharedParts& parts : shared.of_sequences) write(to, parts);
  write(to, shared.gone_adapters);
  write(to, shared.gone_texts);
  return to.finish();
}

StepBounds step_bounds(const StartMessage& start) {
  StepBounds out{start.facts.vocabulary, start.facts.layout, {}};
  for (const CacheGroup& group : start.facts.layout.groups) out.ids.push_back(start.budget_bytes / group.page_bytes);
  return out;
}

StepMessage decode_step(std::string_view bytes, const StepBounds& bounds) {
  MessageReader from(bytes, step_kind);
  StepMessage out;
  out.number = from.between(0, unlimited, "a step's number");
  out.before = read_ops(from, bounds);
  const size_t sequences = from.count(8 * sizeof(int64_t));
  for (size_t i = 0; i < sequences; ++i) out.sequences.push_back(read_sequence(from, bounds));
  out.after = read_ops(from, bounds);
  if (from.between(0, 1, "a flag") != 0)
    for (const RunSequence& run : out.sequences) out.shared.of_sequences.push_back(read_shared(from, bounds, run));
  out.shared.gone_adapters = read_numbers(from);
  out.shared.gone_texts = read_numbers(from);
  from.finish();
  return out;
}

std::string encode(const StepReply& reply) {
  MessageWriter to(reply_kind);
  to.number(reply.number);
  to.number(reply.digest);
  to.text(reply.error);
  to.text(reply.text);
  return to.finish();
}

StepReply decode_reply(std::string_view bytes) {
  MessageReader from(bytes, reply_kind);
  StepReply out;
  out.number = from.between(0, unlimited, "a step's number");
  out.digest = from.number<uint64_t>();
  out.error = from.text();
  out.text = from.text();
  from.finish();
  return out;
}

std::string encode_rows(std::span<const ScoredRow> rows, SentRows::Kind kind) {
  MessageWriter to(rows_kind);
  to.number(int64_t(kind));
  to.number(int64_t(rows.empty() ? 0 : rows.front().logits.size()));
  to.number(int64_t(rows.size()));
  for (const ScoredRow& row : rows) {
    to.number(int64_t(row.sequence));
    to.number(row.position);
    to.text({reinterpret_cast<const char*>(row.logits.data()), row.logits.size_bytes()});
  }
  return to.finish();
}

bool is_rows(std::string_view bytes) { return is_message(bytes, rows_kind); }

SentRows decode_rows(std::string_view bytes) {
  MessageReader from(bytes, rows_kind);
  SentRows out;
  out.kind = SentRows::Kind(from.between(0, int64_t(SentRows::Kind::vector), "a kind of rows"));
  const auto width = size_t(from.between(0, std::numeric_limits<int32_t>::max(), "a row's size"));
  out.rows.resize(from.count(2 * sizeof(int64_t) + width * sizeof(float)));
  out.values.resize(out.rows.size() * width);
  for (size_t i = 0; i < out.rows.size(); ++i) {
    out.rows[i].sequence = size_t(from.between(0, unlimited, "a sequence"));
    out.rows[i].position = from.between(0, unlimited, "a position");
    const std::string_view values = from.text();
    if (values.size() != width * sizeof(float)) refuse_message(str("a row of ", values.size(), " bytes"));
    float* const to = out.values.data() + i * width;
    std::memcpy(to, values.data(), values.size());
    out.rows[i].logits = {to, width};
  }
  from.finish();
  return out;
}

}  // namespace easydel::esurge
