#include "easydel/esurge/model_runner.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <utility>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/esurge/message_bytes.h"
#include "easydel/esurge/model_cache.h"
#include "easydel/esurge/pooled_text.h"
#include "easydel/esurge/rank_leader.h"
#include "easydel/kernels/accumulation_order.h"
#include "easydel/models/model.h"
#include "easydel/nn/adapter_slots.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/kernels.h"

namespace easydel::esurge {
namespace {

// Tokens of a sequence that one pass computes.
struct Piece {
  size_t sequence = 0;
  int64_t first = 0, count = 0;  // among the tokens that run
  int64_t length = 0;            // of the sequence, as far as frequencies depend on it
  int64_t draws = 0;             // of its last tokens
  int64_t scores = 0;            // of its last tokens, for those that are prompt
};

// Where frequencies depend on the length at which a token was first due, a generated token beyond `turning` tokens is a
// piece of its own: the others have the length of the prompt.
std::vector<Piece> pieces_of(const RunSequence& run, size_t index, int64_t turning) {
  const auto count = int64_t(run.tokens.size());
  const int64_t end = run.begin + count, whole = std::max(run.prompt, turning);
  // The last token of a prompt has no next one in the prompt.
  const auto scores = [&](int64_t size) {
    const int64_t first = std::max(run.scored_from, run.begin);
    return first + 1 < run.prompt ? std::max<int64_t>(run.begin + size - first, 0) : 0;
  };
  // Also when they are computed again, after others have come.
  if (turning == 0 || end <= whole)
    return {{index, 0, count, turning == 0 ? run.known : whole, run.draws, scores(count)}};
  std::vector<Piece> out;
  const int64_t together = std::clamp<int64_t>(whole - run.begin, 0, count);
  const auto draws = [&](int64_t first, int64_t size) {
    return std::clamp<int64_t>(first + size - (count - run.draws), 0, size);
  };
  if (together > 0) out.push_back({index, 0, together, whole, draws(0, together), scores(together)});
  for (int64_t i = together; i < count; ++i) out.push_back({index, i, 1, run.begin + i + 1, draws(i, 1), 0});
  return out;
}

}  // namespace

uint64_t digest_of(std::span<const ScoredRow> rows) {
  constexpr uint64_t odd = 0x9e3779b97f4a7c15;
  uint64_t out = rows.size();
  for (const ScoredRow& row : rows) {
    // Four chains, so that a row is hashed about as fast as it is read.
    uint64_t chains[4] = {odd, row.sequence, uint64_t(row.position), row.logits.size()};
    const auto* const values = reinterpret_cast<const unsigned char*>(row.logits.data());
    const size_t words = row.logits.size_bytes() / sizeof(uint64_t);
    for (size_t i = 0; i < words; ++i) {
      uint64_t word;
      std::memcpy(&word, values + i * sizeof word, sizeof word);
      uint64_t& chain = chains[i % 4];
      chain = (chain ^ word) * odd;
      chain ^= chain >> 32;
    }
    if (row.logits.size() % 2 != 0) {
      uint32_t last;
      std::memcpy(&last, row.logits.data() + row.logits.size() - 1, sizeof last);
      chains[0] = (chains[0] ^ last) * odd;
    }
    for (const uint64_t chain : chains) out = (out ^ chain ^ chain >> 29) * odd;
  }
  return out;
}

std::vector<ScoredRow> pooled_rows(std::span<const RunSequence> sequences, int64_t part) {
  std::vector<ScoredRow> out;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const RunSequence& run = sequences[i];
    if (run.part == part && run.pooled && !run.pooled->vector().empty())
      out.push_back({i, int64_t(run.pooled->ids().size()), run.pooled->vector()});
  }
  return out;
}

struct ModelRunner::Parts {
  Parts(const models::Model& of, int64_t page_size, bool whole_texts) : whole(whole_texts), model(&of), pooler(of) {
    if (!whole)
      cache = model_cache(of, page_size);
    else
      cache.layout.page_size = page_size;
    cache.layout.check_valid();
  }

  ModelFacts facts() const;

  const bool whole;
  const models::Model* model;
  Pooler pooler;
  ModelCache cache;
  std::unique_ptr<nn::PageStorage> storage;  // null: whole texts
  std::shared_ptr<RankLeader> ranks;         // null: this rank alone, or not the first one
  int64_t part = 0;

  struct Scores {
    Tensor logits;                // fp32 [rows, vocabulary]
    std::vector<ScoredRow> rows;  // they refer to the tensors
  };
  Scores score(const Tensor& hidden, std::vector<ScoredRow> rows, nn::Pass& pass) const;
  // Makes the vectors of texts that have all their hidden states.
  void pool(std::span<const Piece> pieces, std::span<const RunSequence> runs) const;
  // Runs the pieces, reports the rows of prompts, and appends those that tokens are drawn from to `drawn`.
  void run_pass(std::span<const Piece> pieces, std::span<const RunSequence> runs, const OnRows& on_prompt,
                std::vector<Scores>& drawn) const;
  // What the other ranks have to know of the sequences' adapters and texts.
  std::vector<SharedParts> shared_parts(std::span<const RunSequence> sequences) const;
};

ModelRunner::ModelRunner(const models::Model& model, int64_t page_size, bool whole_texts)
    : parts_(std::make_unique<Parts>(model, page_size, whole_texts)), facts_(parts_->facts()) {}

const std::string& ModelRunner::pooling_refusal() const { return parts_->pooler.refusal(); }

ModelFacts ModelRunner::Parts::facts() const {
  return {cache.layout,
          model->vocabulary(),
          model->max_positions(),
          model->restart_length(),
          model->turning_length(),
          str(weights::name_of(tensor::dtype_of(cache.shape.type)),
              cache.shape.group_size > 0 ? str(" in groups of ", cache.shape.group_size) : ""),
          model->compute_type() == at::kBFloat16 ? std::string(kernels::name(kernels::bf16_order())) : "fp32",
          whole};
}

ModelRunner::~ModelRunner() = default;

void ModelRunner::check_fits(const models::Model& model) const {
  if (!parts_->whole) model.head();
  const ModelFacts facts = Parts(model, facts_.layout.page_size, parts_->whole).facts();
  const char* const remedy = "make an engine for it";
  if (facts.vocabulary != facts_.vocabulary)
    refuse(
        "model",
        str("the new weights have a vocabulary of ", facts.vocabulary, " tokens, the engine's of ", facts_.vocabulary),
        remedy);
  if (facts != facts_)
    refuse("model", "the new weights belong to a model whose layers keep other keys and values than the engine's",
           remedy);
}

void ModelRunner::use(const models::Model& model) {
  check_fits(model);
  parts_->model = &model;
  parts_->pooler = Pooler(model);
}

void ModelRunner::lead(std::shared_ptr<RankLeader> ranks) { parts_->ranks = std::move(ranks); }

void ModelRunner::compute_part(int64_t part) { parts_->part = part; }

void ModelRunner::reserve(const CacheBudget& budget) {
  if (parts_->ranks) parts_->ranks->start({facts_, budget.bytes});
  if (!parts_->whole) parts_->storage = make_storage(parts_->cache, budget);
}

void ModelRunner::read_page(int group, int32_t page, std::span<std::byte> to) const {
  parts_->storage->read(group, page, to);
}

void ModelRunner::write_page(int group, int32_t page, std::span<const std::byte> from) {
  const c10::InferenceMode no_gradient;
  parts_->storage->write(group, page, from);
}

double ModelRunner::seconds_of_prompt(int64_t tokens) {
  RunSequence prompt{.prompt = tokens, .known = tokens, .draws = 1};
  for (int64_t i = 0; i < tokens; ++i) prompt.tokens.push_back(TokenId(i % facts_.vocabulary));
  std::vector<PageOp> before, after;
  for (size_t g = 0; g < facts_.layout.groups.size(); ++g) {
    const bool states = facts_.layout.groups[g].kind == CacheGroup::Kind::state;
    auto& table = prompt.tables.emplace_back(size_t(states ? 1 : facts_.layout.pages_of(tokens)));
    std::iota(table.begin(), table.end(), 0);
    if (states) before.push_back({PageOp::Kind::clear, int(g), -1, 0, 0});
    for (const int32_t page : table) after.push_back({PageOp::Kind::release, int(g), -1, page, 0});
  }
  const Clock::time_point began = Clock::now();
  run(before, {&prompt, 1}, after, {}, [](std::span<const ScoredRow>) {});
  return seconds_since(began);
}

void ModelRunner::share(int64_t tasks, const std::function<void(int64_t)>& work) const {
  tensor::executor().run(tasks, work);
}

ModelRunner::Parts::Scores ModelRunner::Parts::score(const Tensor& hidden, std::vector<ScoredRow> rows,
                                                     nn::Pass& pass) const {
  Scores out{model->head().logits(hidden, pass).cpu().contiguous(), std::move(rows)};
  const int64_t vocabulary = out.logits.size(1);
  for (size_t i = 0; i < out.rows.size(); ++i)
    out.rows[i].logits = {out.logits.data_ptr<float>() + int64_t(i) * vocabulary, size_t(vocabulary)};
  return out;
}

void ModelRunner::Parts::run_pass(std::span<const Piece> pieces, std::span<const RunSequence> runs,
                                  const OnRows& on_prompt, std::vector<Scores>& drawn) const {
  std::vector<nn::PageStorage::Sequence> places;
  std::vector<int64_t> prompts, lengths, requested, prompt_rows, draw_rows, begins = {0};
  std::vector<uint8_t> types;                           // of the tokens; empty: all 0
  std::vector<std::pair<const Piece*, int64_t>> texts;  // that are pooled, and their first rows
  std::vector<ScoredRow> of_prompts, of_draws;
  int64_t total = 0, row = 0;
  for (const Piece& piece : pieces) total += piece.count;
  const Tensor tokens = at::empty({total}, at::kLong);
  int64_t* to = tokens.data_ptr<int64_t>();
  for (const Piece& piece : pieces) {
    const RunSequence& run = runs[piece.sequence];
    nn::PageStorage::Sequence& place = places.emplace_back();
    place.length = run.begin + piece.first, place.added = piece.count;
    for (const auto& table : run.tables) place.tables.emplace_back(table);
    to = std::copy_n(run.tokens.begin() + piece.first, piece.count, to);
    begins.push_back(begins.back() + piece.count);
    prompts.push_back(run.prompt), lengths.push_back(piece.length);
    if (run.pooled) {
      texts.emplace_back(&piece, row);
      if (const std::vector<uint8_t>& own = run.pooled->asked().type_ids; !own.empty()) {
        types.resize(size_t(begins.back()));
        std::copy_n(own.begin() + place.length, piece.count, types.end() - piece.count);
      }
    }
    const int64_t rows = run.pooled ? piece.count : std::max(piece.scores, piece.draws);
    requested.push_back(rows);
    if (run.pooled) {
      row += rows;
      continue;
    }
    for (int64_t i = piece.count - rows; i < piece.count; ++i, ++row) {
      const ScoredRow scored{piece.sequence, place.length + i, {}};
      if (i >= piece.count - piece.scores && scored.position + 1 < run.prompt)
        prompt_rows.push_back(row), of_prompts.push_back(scored);
      if (i >= piece.count - piece.draws) draw_rows.push_back(row), of_draws.push_back(scored);
    }
  }
  std::vector<std::shared_ptr<const nn::LoadedAdapter>> adapters;  // of the pieces; empty: none has one
  if (std::ranges::any_of(pieces, [&](const Piece& piece) { return runs[piece.sequence].adapter != nullptr; }))
    for (const Piece& piece : pieces) adapters.push_back(runs[piece.sequence].adapter);
  models::Inputs inputs{tokens.to(model->device())};
  if (std::ranges::count(types, 0) != std::ssize(types)) {
    types.resize(size_t(total));
    inputs.token_types = at::tensor(std::vector<int64_t>(types.begin(), types.end()), at::kLong).to(model->device());
  }
  const auto memory = whole ? nullptr : storage->memory(places);
  nn::Pass pass = whole ? nn::Pass::over(std::move(begins)) : nn::Pass::next(*memory, std::move(prompts));
  if (!whole) pass.stream().lengths = std::move(lengths), pass.stream().requested = std::move(requested);
  pass.stream().sequence_adapters = adapters;
  const auto rows_of = [&](const Tensor& hidden, const std::vector<int64_t>& rows) {
    return hidden.index_select(0, at::tensor(rows, at::kLong).to(hidden.device()));
  };
  Tensor hidden;
  const auto forward = [&] {
    hidden = model->forward(inputs, pass).hidden;
    if (of_prompts.empty() && texts.empty() && !of_draws.empty())
      drawn.push_back(score(hidden, std::move(of_draws), pass));
  };
  // With few tokens a pass is many short steps, and no torch operator that needs the thread pool.
  constexpr int64_t few = 32;
  total <= few && !whole ? tensor::executor().hold(forward) : forward();
  for (const auto& [piece, first] : texts) {
    const RunSequence& run = runs[piece->sequence];
    run.pooled->add(run.begin + piece->first, hidden.slice(0, first, first + piece->count));
  }
  if (of_prompts.empty() && texts.empty()) return;
  // The rows are not those of the pass any more.
  const auto score_apart = [&](const std::vector<int64_t>& taken, std::vector<ScoredRow> of) {
    nn::Pass apart;
    if (!adapters.empty()) {
      std::vector<int64_t> begins;
      for (size_t i = 0; i < of.size(); ++i) begins.push_back(int64_t(i));
      begins.push_back(int64_t(of.size()));
      apart = nn::Pass::over(std::move(begins));
      for (const ScoredRow& scored : of) apart.stream().sequence_adapters.push_back(runs[scored.sequence].adapter);
    }
    return score(rows_of(hidden, taken), std::move(of), apart);
  };
  const auto most = size_t(std::max<int64_t>(1, (int64_t(1) << 22) / model->vocabulary()));  // 16 MiB of scores
  for (size_t begin = 0; begin < prompt_rows.size(); begin += most) {
    const size_t end = std::min(prompt_rows.size(), begin + most);
    const std::vector<int64_t> some(prompt_rows.begin() + int64_t(begin), prompt_rows.begin() + int64_t(end));
    const Scores scores = score_apart(some, {of_prompts.begin() + int64_t(begin), of_prompts.begin() + int64_t(end)});
    on_prompt(scores.rows);
  }
  if (!of_draws.empty()) drawn.push_back(score_apart(draw_rows, std::move(of_draws)));
}

void ModelRunner::Parts::pool(std::span<const Piece> pieces, std::span<const RunSequence> runs) const {
  std::vector<PooledText*> texts;
  std::vector<std::shared_ptr<const nn::LoadedAdapter>> adapters;
  bool adapted = false;
  for (const Piece& piece : pieces) {
    const RunSequence& run = runs[piece.sequence];
    if (!run.pooled || !run.pooled->complete() || !run.pooled->vector().empty()) continue;
    texts.push_back(run.pooled.get());
    adapters.push_back(run.adapter);
    adapted |= run.adapter != nullptr;
  }
  if (!adapted) adapters.clear();
  if (!texts.empty()) pooler.pool(texts, std::move(adapters));
}

// What the rows of run() refer to.
struct ModelRunner::Kept {
  std::vector<Parts::Scores> drawn;
  std::vector<std::shared_ptr<const SentRows>> sent;  // by other ranks
  std::vector<ScoredRow> rows;                        // that tokens are drawn from

  void sort_rows() {
    std::ranges::stable_sort(rows, {}, [](const ScoredRow& row) { return std::pair{row.sequence, row.position}; });
  }
};

std::vector<SharedParts> ModelRunner::Parts::shared_parts(std::span<const RunSequence> sequences) const {
  std::vector<SharedParts> out;
  if (std::ranges::none_of(sequences, [](const RunSequence& run) { return run.adapter || run.pooled; })) return out;
  for (const RunSequence& run : sequences) {
    SharedParts& shared = out.emplace_back();
    if (run.adapter) shared.adapter = run.adapter->version();
    if (!run.pooled) continue;
    shared.text = run.pooled->number(), shared.ids = run.pooled->ids(), shared.asked = run.pooled->asked();
    ranks->know_text(shared.text, run.pooled);
  }
  return out;
}

// This rank's part of the sequences.
void ModelRunner::compute(std::span<const PageOp> before, std::span<const RunSequence> sequences,
                          std::span<const PageOp> after, const OnRows& on_prompt, Kept& kept) {
  if (parts_->storage) apply(*parts_->storage, before);
  const int64_t turning = facts_.restart_length > 0 || parts_->whole ? 0 : facts_.turning_length;
  std::vector<std::vector<Piece>> passes;  // the n-th pieces of all sequences
  for (size_t s = 0; s < sequences.size(); ++s) {
    if (sequences[s].part != parts_->part) continue;
    const std::vector<Piece> pieces = pieces_of(sequences[s], s, turning);
    if (passes.size() < pieces.size()) passes.resize(pieces.size());
    for (size_t i = 0; i < pieces.size(); ++i) passes[i].push_back(pieces[i]);
  }
  // Rows of one adapter side by side are one product of it; where a row stands changes none of its bits.
  const auto adapter_of = [&](const Piece& piece) {
    const auto& adapter = sequences[piece.sequence].adapter;
    return adapter ? adapter->version() : 0;
  };
  for (std::vector<Piece>& pieces : passes) std::ranges::stable_sort(pieces, {}, adapter_of);
  for (const std::vector<Piece>& pieces : passes) {
    parts_->run_pass(pieces, sequences, on_prompt, kept.drawn);
    parts_->pool(pieces, sequences);
  }
  if (parts_->storage) apply(*parts_->storage, after);
  for (const Parts::Scores& scores : kept.drawn)
    kept.rows.insert(kept.rows.end(), scores.rows.begin(), scores.rows.end());
  kept.sort_rows();
}

std::shared_ptr<const void> ModelRunner::run(std::span<const PageOp> before, std::span<const RunSequence> sequences,
                                             std::span<const PageOp> after, const OnRows& on_prompt,
                                             const OnRows& on_draws) {
  const c10::InferenceMode no_gradient;
  const auto kept = std::make_shared<Kept>();
  RankLeader* const ranks = parts_->ranks.get();
  if (ranks && before.empty() && sequences.empty() && after.empty()) return kept;
  if (ranks) {
    ranks->begin_step(before, sequences, after, parts_->shared_parts(sequences));
    // What is done with rows may fail here alone; the pass goes on as it does on the other ranks.
    std::exception_ptr failed;
    const auto give_prompt = [&](std::span<const ScoredRow> rows) {
      try {
        if (!failed) on_prompt(rows);
      } catch (...) {
        failed = std::current_exception();
      }
    };
    try {
      compute(before, sequences, after, give_prompt, *kept);
    } catch (const UserError& error) {
      ranks->fail_step(error.headline());
    } catch (const std::exception& error) {
      ranks->fail_step(error.what());
    }
    const uint64_t digest = digest_of(kept->rows) + digest_of(pooled_rows(sequences, parts_->part));
    ranks->end_step(digest, [&](std::shared_ptr<const SentRows> rows) {
      const bool vectors = rows->kind == SentRows::Kind::vector;
      for (const ScoredRow& row : rows->rows) {
        if (row.sequence >= sequences.size() || vectors != (sequences[row.sequence].pooled != nullptr) ||
            (!vectors && int64_t(row.logits.size()) != facts_.vocabulary))
          refuse_message(str("it has ", row.logits.size(), " scores of sequence ", row.sequence));
        if (vectors) sequences[row.sequence].pooled->take_vector(row.logits);
      }
      if (vectors) return;
      if (rows->kind == SentRows::Kind::prompt) return give_prompt(rows->rows);
      kept->rows.insert(kept->rows.end(), rows->rows.begin(), rows->rows.end());
      kept->sent.push_back(std::move(rows));
    });
    kept->sort_rows();
    const auto draws = [](int64_t sum, const RunSequence& run) { return sum + run.draws; };
    const int64_t expected = std::accumulate(sequences.begin(), sequences.end(), int64_t{0}, draws);
    check(int64_t(kept->rows.size()) == expected, "ranks: ", kept->rows.size(), " rows of scores instead of ",
          expected);
    if (failed) std::rethrow_exception(failed);
  } else {
    compute(before, sequences, after, on_prompt, *kept);
  }
  // Pooled texts have no rows, and are done all the same.
  if (on_draws) on_draws(kept->rows);
  return kept;
}

}  // namespace easydel::esurge
