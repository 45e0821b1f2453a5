#include "easydel/esurge/step_message.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "easydel/base/error.h"
#include "easydel/esurge/message_bytes.h"

namespace easydel::esurge {
namespace {

constexpr std::string_view start_kind = "easydel start 1", step_kind = "easydel step 1", reply_kind = "easydel reply 1",
                           rows_kind = "easydel rows 1";
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

void write(MessageWriter& to, const RunSequence& run) {
  check(!run.adapter && !run.pooled, "a step on several ranks has a sequence with an adapter, or one that is pooled");
  to.number(run.begin);
  to.number(run.prompt);
  to.number(run.known);
  to.number(run.draws);
  to.number(run.scored_from);
  to.number(run.part);
  to.number(int64_t(run.tokens.size()));
  for (const TokenId token : run.tokens) to.number(int64_t(token));
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
  run.tokens.resize(from.count(sizeof(int64_t)));
  for (TokenId& token : run.tokens) token = TokenId(from.between(0, bounds.vocabulary - 1, "a token"));
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
  out.budget_bytes = from.between(1, unlimited, "a budget");
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
                        std::span<const PageOp> after) {
  MessageWriter to(step_kind);
  to.number(number);
  write(to, before);
  to.number(int64_t(sequences.size()));
  for (const RunSequence& run : sequences) write(to, run);
  write(to, after);
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
  from.finish();
  return out;
}

std::string encode(const StepReply& reply) {
  MessageWriter to(reply_kind);
  to.number(reply.number);
  to.number(reply.digest);
  to.text(reply.error);
  return to.finish();
}

StepReply decode_reply(std::string_view bytes) {
  MessageReader from(bytes, reply_kind);
  StepReply out;
  out.number = from.between(0, unlimited, "a step's number");
  out.digest = from.number<uint64_t>();
  out.error = from.text();
  from.finish();
  return out;
}

std::string encode_rows(std::span<const ScoredRow> rows, bool prompt) {
  MessageWriter to(rows_kind);
  to.number(int64_t(prompt));
  to.number(int64_t(rows.empty() ? 0 : rows.front().logits.size()));
  to.number(int64_t(rows.size()));
  for (const ScoredRow& row : rows) {
    to.number(int64_t(row.sequence));
    to.number(row.position);
    to.text({reinterpret_cast<const char*>(row.logits.data()), row.logits.size_bytes()});
  }
  return to.finish();
}

bool is_rows(std::string_view bytes) {
  return bytes.substr(std::min(sizeof(uint64_t), bytes.size())).starts_with(rows_kind);
}

SentRows decode_rows(std::string_view bytes) {
  MessageReader from(bytes, rows_kind);
  SentRows out;
  out.prompt = from.between(0, 1, "a flag") != 0;
  const auto vocabulary = size_t(from.between(0, std::numeric_limits<int32_t>::max(), "a vocabulary's size"));
  out.rows.resize(from.count(2 * sizeof(int64_t) + vocabulary * sizeof(float)));
  out.logits.resize(out.rows.size() * vocabulary);
  for (size_t i = 0; i < out.rows.size(); ++i) {
    out.rows[i].sequence = size_t(from.between(0, unlimited, "a sequence"));
    out.rows[i].position = from.between(0, unlimited, "a position");
    const std::string_view values = from.text();
    if (values.size() != vocabulary * sizeof(float)) refuse_message(str("a row of ", values.size(), " bytes"));
    float* const to = out.logits.data() + i * vocabulary;
    std::memcpy(to, values.data(), values.size());
    out.rows[i].logits = {to, vocabulary};
  }
  from.finish();
  return out;
}

}  // namespace easydel::esurge
