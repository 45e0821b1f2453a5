// The messages of a step between ranks: what is written is read, and nothing damaged or out of bounds is.
#include "easydel/esurge/step_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::esurge {
namespace {

StartMessage start_message() {
  StartMessage out;
  out.facts.layout.page_size = 16;
  out.facts.layout.groups = {{CacheGroup::Kind::full, 1024, 0}, {CacheGroup::Kind::state, 4096, 0}};
  out.facts.vocabulary = 100;
  out.facts.cache_format = "F32", out.facts.order = "fp32";
  out.budget_bytes = 20 * 1024;
  return out;
}

RunSequence sequence() {
  RunSequence out;
  out.begin = 15, out.tokens = {7, 99, 0}, out.prompt = 16, out.known = 18, out.draws = 2;
  out.tables = {{-1, 19}, {4}};
  return out;
}

const std::vector<PageOp> ops = {{PageOp::Kind::copy, 0, 3, 5, 16}, {PageOp::Kind::clear, 1, -1, 4, 0}};

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.headline();
  }
  return "no error";
}

TEST(StepMessage, IsReadAsItWasWritten) {
  const StepBounds bounds = step_bounds(start_message());
  EXPECT_EQ(bounds.ids, (std::vector<int64_t>{20, 5}));
  const std::vector<RunSequence> sequences = {sequence(), sequence()};
  const std::vector<PageOp> after = {{PageOp::Kind::release, 0, -1, 2, 0}};
  const StepMessage read = decode_step(encode_step(12, ops, sequences, after), bounds);
  EXPECT_EQ(read.number, 12);
  ASSERT_EQ(read.before.size(), 2u);
  EXPECT_EQ(read.before[0].kind, PageOp::Kind::copy);
  EXPECT_EQ(read.before[0].from, 3);
  EXPECT_EQ(read.before[0].to, 5);
  EXPECT_EQ(read.before[0].rows, 16);
  EXPECT_EQ(read.before[1].group, 1);
  ASSERT_EQ(read.after.size(), 1u);
  EXPECT_EQ(read.after[0].kind, PageOp::Kind::release);
  ASSERT_EQ(read.sequences.size(), 2u);
  const RunSequence& got = read.sequences[1];
  EXPECT_EQ(got.begin, 15);
  EXPECT_EQ(got.tokens, sequences[1].tokens);
  EXPECT_EQ(got.prompt, 16);
  EXPECT_EQ(got.known, 18);
  EXPECT_EQ(got.draws, 2);
  EXPECT_EQ(got.scored_from, sequences[1].scored_from);
  EXPECT_EQ(got.tables, sequences[1].tables);
}

TEST(StepMessage, SaysWhichAdaptersAndTextsItsSequencesHave) {
  const StepBounds bounds = step_bounds(start_message());
  RunSequence run = sequence();
  run.begin = 1, run.tables = {{3}, {4}};
  StepShared shared;
  shared.of_sequences.resize(2);
  shared.of_sequences[0].adapter = 9;
  shared.of_sequences[1].text = 4, shared.of_sequences[1].ids = {5, 7, 99, 0, 8};
  shared.of_sequences[1].asked = {{0, 0, 1, 1, 0}, 2};
  shared.gone_adapters = {3, 1}, shared.gone_texts = {2};
  const std::vector<RunSequence> sequences = {sequence(), run};
  const StepShared read = decode_step(encode_step(1, ops, sequences, {}, shared), bounds).shared;
  ASSERT_EQ(read.of_sequences.size(), 2u);
  EXPECT_EQ(read.of_sequences[0].adapter, 9u);
  EXPECT_EQ(read.of_sequences[0].text, 0u);
  EXPECT_EQ(read.of_sequences[1].adapter, 0u);
  EXPECT_EQ(read.of_sequences[1].text, 4u);
  EXPECT_EQ(read.of_sequences[1].ids, shared.of_sequences[1].ids);
  EXPECT_EQ(read.of_sequences[1].asked.type_ids, shared.of_sequences[1].asked.type_ids);
  EXPECT_EQ(read.of_sequences[1].asked.prompt_tokens, 2);
  EXPECT_EQ(read.gone_adapters, shared.gone_adapters);
  EXPECT_EQ(read.gone_texts, shared.gone_texts);
  const auto error_with = [&](const std::function<void(SharedParts&)>& change) {
    StepShared changed = shared;
    change(changed.of_sequences[1]);
    return error_of([&] { decode_step(encode_step(1, ops, sequences, {}, changed), bounds); });
  };
  const std::string where = "message between ranks: ";
  EXPECT_EQ(error_with([](SharedParts& parts) { parts.ids.resize(3), parts.asked.type_ids.clear(); }),
            where + "a text of 3 tokens has more of them");
  EXPECT_EQ(error_with([](SharedParts& parts) { parts.ids[4] = 100; }),
            where + "a token is 100, which is not between 0 and 99");
  EXPECT_EQ(error_with([](SharedParts& parts) { parts.asked.type_ids.pop_back(); }), where + "4 type ids for 5 tokens");
}

TEST(StepMessage, IsRefusedWhereverAByteOfItIsDamaged) {
  const StepBounds bounds = step_bounds(start_message());
  const std::vector<RunSequence> sequences = {sequence()};
  const std::string bytes = encode_step(1, ops, sequences, {});
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = char(damaged[i] ^ 0x10);
    EXPECT_EQ(error_of([&] { decode_step(damaged, bounds); }),
              "message between ranks: it is damaged: its digest differs")
        << i;
    EXPECT_NE(error_of([&] { decode_step(bytes.substr(0, i), bounds); }), "no error") << i;
  }
}

// Whoever can write a digest can still not make a rank read outside of its pages.
TEST(StepMessage, IsBoundedWhateverItSays) {
  const StepBounds bounds = step_bounds(start_message());
  std::mt19937 random(1);
  const std::vector<RunSequence> sequences = {sequence()};
  const std::string bytes = encode_step(1, ops, sequences, {});
  const std::string body = bytes.substr(0, bytes.size() - 64);
  for (int round = 0; round < 20000; ++round) {
    std::string changed = body;
    for (int i = int(random() % 3); i >= 0; --i) changed[random() % changed.size()] = char(random());
    if (random() % 4 == 0) changed.resize(random() % changed.size());
    try {
      const StepMessage read = decode_step(changed + files::sha256(changed), bounds);
      for (const RunSequence& run : read.sequences) {
        ASSERT_EQ(run.tables.size(), 2u);
        for (const TokenId token : run.tokens) ASSERT_TRUE(token >= 0 && token < 100);
        for (const int32_t page : run.tables[0]) ASSERT_TRUE(page >= -1 && page < 20);
        ASSERT_GE(int64_t(run.tables[0].size()) * 16, run.begin + int64_t(run.tokens.size()));
        ASSERT_LE(run.draws, int64_t(run.tokens.size()));
      }
      for (const PageOp& op : read.before) ASSERT_TRUE(op.to >= 0 && op.to < bounds.ids[size_t(op.group)]);
    } catch (const UserError&) {
    }
  }
}

TEST(StepMessage, SaysWhatIsOutOfBounds) {
  const StepBounds bounds = step_bounds(start_message());
  const auto error_with = [&](const std::function<void(RunSequence&)>& change) {
    std::vector<RunSequence> all = {sequence()};
    change(all[0]);
    return error_of([&] { decode_step(encode_step(1, {}, all, {}), bounds); });
  };
  const std::string where = "message between ranks: ";
  EXPECT_EQ(error_with([](RunSequence& run) { run.tokens[1] = 100; }),
            where + "a token is 100, which is not between 0 and 99");
  EXPECT_EQ(error_with([](RunSequence& run) { run.tables[0][1] = 20; }),
            where + "a page is 20, which is not between -1 and 19");
  EXPECT_EQ(error_with([](RunSequence& run) { run.tables.pop_back(); }),
            where + "1 page tables for 2 groups of layers");
  EXPECT_EQ(error_with([](RunSequence& run) { run.begin = 30; }), where + "a page table of 2 pages for 33 tokens");
  EXPECT_EQ(error_with([](RunSequence& run) { run.tables[0][1] = -1; }),
            where + "a page table of 2 pages for 18 tokens");
  EXPECT_EQ(error_with([](RunSequence& run) { run.draws = 4; }), where + "4 draws of 3 tokens");
  EXPECT_EQ(error_with([](RunSequence& run) { run.tokens.clear(); }), where + "a sequence has no tokens");
  EXPECT_EQ(error_of([&] {
              decode_step(encode(StepReply{1, 2, ""}), bounds);
            }),
            where + "it is 'easydel reply 2', and 'easydel step 2' is expected");
}

TEST(StepMessage, BeginsWithWhatRanksHaveInCommon) {
  const StartMessage start = start_message(), read = decode_start(encode(start));
  EXPECT_EQ(read.facts, start.facts);
  EXPECT_EQ(read.budget_bytes, start.budget_bytes);
  refuse_other_facts(start.facts, read.facts, "rank 1");
  ModelFacts other = start.facts;
  other.vocabulary = 99;
  const std::string where = "esurge: the ranks do not compute the same: ";
  EXPECT_EQ(error_of([&] { refuse_other_facts(start.facts, other, "rank 1"); }),
            where + "the vocabulary is 100 on the first rank, 99 on rank 1");
  other = start.facts, other.order = "amx";
  EXPECT_EQ(error_of([&] { refuse_other_facts(start.facts, other, "rank 1"); }),
            where + "the order of additions is fp32 on the first rank, amx on rank 1");
  other = start.facts, other.layout.groups[0].page_bytes = 1;
  EXPECT_EQ(error_of([&] { refuse_other_facts(start.facts, other, "rank 1"); }),
            where + "layers of rank 1 keep other keys and values");
}

TEST(StepMessage, AnswersWithADigestOrAnError) {
  const StepReply read = decode_reply(encode(StepReply{7, ~uint64_t{0}, "out of memory"}));
  EXPECT_EQ(read.number, 7);
  EXPECT_EQ(read.digest, ~uint64_t{0});
  EXPECT_EQ(read.error, "out of memory");
}

TEST(StepMessage, CarriesScoresOfOtherParts) {
  const std::vector<float> first = {1, 2, 3}, second = {4, 5, 6};
  const std::vector<ScoredRow> rows = {{3, 17, first}, {4, 2, second}};
  const std::string bytes = encode_rows(rows, SentRows::Kind::prompt);
  EXPECT_TRUE(is_rows(bytes));
  EXPECT_FALSE(is_rows(encode(StepReply{})));
  const SentRows read = decode_rows(bytes);
  EXPECT_EQ(read.kind, SentRows::Kind::prompt);
  ASSERT_EQ(read.rows.size(), 2u);
  EXPECT_EQ(read.rows[1].sequence, 4u);
  EXPECT_EQ(read.rows[1].position, 2);
  EXPECT_TRUE(std::ranges::equal(read.rows[0].logits, first));
  EXPECT_TRUE(std::ranges::equal(read.rows[1].logits, second));
  EXPECT_TRUE(decode_rows(encode_rows({}, SentRows::Kind::draw)).rows.empty());
  EXPECT_EQ(decode_rows(encode_rows(rows, SentRows::Kind::vector)).kind, SentRows::Kind::vector);
}

}  // namespace
}  // namespace easydel::esurge
