#include "easydel/esurge/step_engine.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/esurge/prefix_cache_files.h"
#include "easydel/esurge/step_engine_parts.h"
#include "easydel/esurge/weight_sources.h"
#include "easydel/models/model.h"

namespace easydel::esurge {
namespace {

int64_t bytes_of_pages(const CacheLayout& layout, int64_t pages) {
  int64_t bytes = 0;
  for (const CacheGroup& group : layout.groups) bytes += pages * group.page_bytes;
  return bytes;
}

// The draft model reads the same tokens, so it gets the part of the memory that they take of it.
CacheBudget take_draft_budget(EngineOptions& options, const EngineSetup& setup, const ModelLimits& limits,
                              const CacheLayout& draft) {
  if (setup.pages) return {bytes_of_pages(draft, *setup.pages), false};
  const FreeMemory all = options.memory;
  const auto own = double(options.layout.all_bytes(options.max_model_len)),
             other = double(draft.all_bytes(options.max_model_len));
  const auto given = int64_t(double(all.bytes) * other / (own + other));
  options = engine_options(setup.config, limits, {all.bytes - given, all.limit});
  options.memory = all;
  return cache_budget(draft, setup.config.hbm_utilization, given, setup.config.max_num_seqs, options.max_model_len);
}

// Reserves the pages of the runner.
EngineOptions options_of(const EngineSetup& setup, ModelRunner& runner, const DraftModel* draft,
                         CacheBudget& draft_budget) {
  const ModelFacts& facts = runner.facts();
  ModelLimits limits{.layout = facts.layout, .whole_texts = setup.pools_only};
  if (facts.max_positions > 0) limits.max_positions = facts.max_positions;
  FreeMemory memory = free_memory().value_or(FreeMemory{int64_t(4) << 30});
  if (setup.ranks) {
    runner.lead(setup.ranks);
    memory.bytes = setup.ranks->wait_for_ranks(facts, memory.bytes);
  }
  EngineOptions options = engine_options(setup.config, limits, memory);
  if (draft) draft_budget = take_draft_budget(options, setup, limits, draft->layout());
  if (setup.pages) {
    if (*setup.pages < 1) refuse("pages", str(*setup.pages, " is out of range"), "give at least 1");
    options.budget = {bytes_of_pages(facts.layout, *setup.pages), false};
  }
  options.scheduler.restart_length = facts.restart_length;
  options.scheduler.turning_length = facts.turning_length;
  if (setup.pools_only && !setup.ranks) return options;
  if (!setup.pools_only) setup.model->head();
  runner.reserve(options.budget);
  if (setup.ranks) refuse_other_weights(*setup.ranks, *setup.model);
  if (setup.pools_only) return options;
  // Where pages are given, a run is to be the same on every machine.
  if (!setup.config.max_num_batched_tokens && !setup.pages)
    measure_step_tokens(options, [&](int64_t tokens) { return runner.seconds_of_prompt(tokens); });
  return options;
}

PoolingRules pooling_of(const EngineSetup& setup, const EngineOptions& options, const ModelRunner& runner) {
  PoolingRules rules{.only = setup.pools_only, .refusal = runner.pooling_refusal()};
  if (setup.pools_only) rules.max_tokens = options.scheduler.max_num_batched_tokens;
  return rules;
}

}  // namespace

std::shared_ptr<const RequestPreparer> StepEngine::Parts::make_preparer(
    std::shared_ptr<const text::Tokenizer> tokenizer) const {
  return std::make_shared<const RequestPreparer>(
      std::move(tokenizer), setup.config, options.max_model_len, runner.facts().vocabulary,
      generation::generation_config(setup.model->folder()), setup.chat_template, pooling_of(setup, options, runner));
}

StepEngine::Parts::Parts(EngineSetup given)
    : setup(std::move(given)),
      runner(*setup.model, setup.config.page_size, setup.pools_only),
      draft(setup.draft ? std::make_unique<DraftModel>(setup.draft, setup.config.page_size) : nullptr),
      options(options_of(setup, runner, draft.get(), draft_budget)),
      preparer(make_preparer(setup.tokenizer)),
      scheduler(options.scheduler, options.layout, options.budget) {
  if (draft) draft->reserve(draft_budget);
  info.name = setup.config.esurge_name.value_or(setup.model->folder().filename().string());
  info.fingerprint = setup.fingerprint;
  info.vocabulary = runner.facts().vocabulary;
  info.options = options;
  if (!setup.config.silent_mode) log::info("esurge: ", options.describe());
  if (draft && !setup.config.silent_mode)
    log::info("esurge: drafts by ", setup.draft->folder().filename().string(), ", ",
              draft_budget.describe(draft->layout()));
  if (setup.config.overlap_execution) side = std::make_unique<SideThread>();
  if (setup.pools_only) return;
  drafts = {setup.config.num_speculative_tokens, setup.config.prompt_lookup_min, setup.config.prompt_lookup_max};
  speculates = drafts.max_drafts > 0;
  if (!draft) return;
  drafts.by_model = true;
  // A step of few rows takes as long as reading the weights, which its operations are a measure of.
  drafts.price = setup.draft_price
                     ? *setup.draft_price
                     : setup.draft->training_flops_per_token(1) / setup.model->training_flops_per_token(1);
}

StepEngine::StepEngine(EngineSetup setup) : parts_(std::make_unique<Parts>(std::move(setup))) {
  const auto& path = parts_->setup.config.prefix_cache_path;
  if (path && !parts_->setup.pools_only) parts_->load_prefix_cache(*path);
}

StepEngine::~StepEngine() {
  const auto& path = parts_->setup.config.prefix_cache_path;
  if (path && !parts_->setup.pools_only) try {
      save_prefix_cache(*path);
    } catch (const std::exception& error) {
      log::warning("esurge: the prefix cache is not saved: ", error.what());
    }
}

void StepEngine::Parts::load_prefix_cache(const std::filesystem::path& folder) {
  check(!setup.fingerprint.empty(), "esurge: a prefix cache on the disk needs the model's fingerprint");
  const auto stored = esurge::load_prefix_cache(folder, identity(), options.layout);
  if (!stored) return;
  if (setup.ranks) {
    const std::string why = setup.ranks->give(OpenCache{folder.string(), setup.fingerprint, stored->index_digest});
    if (!why.empty()) {
      log::info("esurge: the prefix cache in ", folder.string(), " is not used: ", why);
      setup.ranks->give(PlaceCache{});
      return;
    }
  }
  restore(*stored);
  const PrefixIndex& index = scheduler.cache().index();
  if (!setup.config.silent_mode)
    log::info("esurge: ", index.nodes(), " of ", stored->index.nodes.size(), " pages of the prefix cache in ",
              folder.string(), " are loaded");
}

void StepEngine::Parts::restore(const StoredPrefixCache& stored) {
  const std::vector<PrefixIndex::Restored> pages = scheduler.restore_index(stored.index);
  for (const PrefixIndex::Restored& one : pages)
    if (stored.has(one)) runner.write_page(one.group, one.page, stored.page(options.layout, one.group, one.number));
  const std::string why = setup.ranks ? setup.ranks->give(PlaceCache{pages}) : "";
  if (!why.empty()) refuse("prefix cache", why);
}

void StepEngine::save_prefix_cache(const std::filesystem::path& folder) const {
  Parts& p = *parts_;
  check(!p.setup.fingerprint.empty(), "esurge: a prefix cache on the disk needs the model's fingerprint");
  const std::lock_guard lock(p.mutex);
  const PrefixIndex& index = p.scheduler.cache().index();
  if (index.nodes() == 0) return;
  std::vector<std::vector<int32_t>> ids;
  const SavedPrefixIndex saved = index.save(ids);
  if (p.setup.ranks) {
    const std::string why =
        p.setup.ranks->give(SaveCache{folder.string(), p.setup.fingerprint, saved.encode(p.options.layout), ids});
    if (!why.empty()) refuse("prefix cache", why);
  }
  const int64_t tokens = esurge::save_prefix_cache(
      folder, p.identity(), p.options.layout, saved, ids,
      [&](int group, int32_t page, std::span<std::byte> to) { p.runner.read_page(group, page, to); });
  if (!p.setup.config.silent_mode && tokens > 0)
    log::info("esurge: the prefix cache is saved in ", folder.string(), ": ", tokens, " tokens");
}

void StepEngine::reset_prefix_cache() {
  const std::lock_guard lock(parts_->mutex);
  parts_->scheduler.reset_prefix_cache();
}

EngineInfo StepEngine::info() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->info;
}

RequestId StepEngine::add(Request request, OnOutput on_output) {
  Parts& p = *parts_;
  try {
    const auto chosen = p.choose_adapter(request.sampling.adapter);
    PreparedRequest prepared = chosen.text.preparer->prepare(std::move(request));
    // Before there is anything of each answer.
    if (const int64_t most = p.options.scheduler.max_num_seqs; prepared.scheduled.choices > most)
      refuse("n", str(prepared.scheduled.choices, " choices are more than esurge.max_num_seqs ", most),
             "ask for fewer choices, or raise esurge.max_num_seqs");
    const double now = p.now();
    if (const auto seconds = prepared.request.sampling.timeout_seconds) prepared.scheduled.deadline = now + *seconds;
    const DraftOptions drafts = p.drafts_of(prepared.request.sampling);
    auto live = std::make_shared<LiveRequest>(0, std::move(prepared), std::move(on_output), chosen.text.tokenizer,
                                              p.info.vocabulary, drafts, p.setup.config.sampler_metrics, now);
    const std::lock_guard lock(p.mutex);
    if (!p.lost.empty()) refuse("esurge", p.lost, "start all ranks again");
    if (p.ended) refuse("esurge", "the engine is terminated", "make another one");
    SchedulerRequest scheduled = live->prepared.scheduled;
    live->fingerprint = p.info.fingerprint;
    p.use_adapter(*live, scheduled, chosen.adapter);
    p.choose_part(*live, scheduled);
    live->id = p.scheduler.add(scheduled);
    if (live->guided) p.add_negative(live, std::move(scheduled));
    p.live.emplace(live->id, live);
    return live->id;
  } catch (const UserError&) {
    const std::lock_guard lock(p.mutex);
    ++p.metrics.requests_refused;
    throw;
  }
}

// Steps that are planned ahead have no drafts.
DraftOptions StepEngine::Parts::drafts_of(const SamplingParams& sampling) {
  const SamplingParams::Speculation asked = sampling.speculation();
  DraftOptions out = drafts;
  if (out.by_model) {
    if (asked.num_assistant_tokens) out.max_drafts = *asked.num_assistant_tokens;
  } else if (!plans_ahead() && !setup.pools_only) {
    if (asked.prompt_lookup_num_tokens) out.max_drafts = *asked.prompt_lookup_num_tokens;
    if (asked.max_matching_ngram_size) out.max_ngram = *asked.max_matching_ngram_size;
    out.min_ngram = std::min(out.min_ngram, out.max_ngram);
  }
  if (out.max_drafts > 0) speculates = true;
  return out;
}

void StepEngine::Parts::choose_part(LiveRequest& request, SchedulerRequest& scheduled) const {
  if (!setup.ranks || setup.ranks->data_parts() == 1) return;
  std::vector<std::pair<int64_t, int64_t>> load(size_t(setup.ranks->data_parts()));
  for (const auto& [id, other] : live) {
    auto& [sequences, tokens] = load[size_t(other->part)];
    sequences += other->unended, tokens += other->prepared.prompt_tokens();
  }
  request.part = scheduled.root.part = std::ranges::min_element(load) - load.begin();
}

// The answers of a guided request after its negative prompt: sequences like others, which go on with the same tokens.
void StepEngine::Parts::add_negative(const std::shared_ptr<LiveRequest>& request, SchedulerRequest scheduled) try {
  scheduled.prompt = request->prepared.negative_prompt;
  scheduled.deadline.reset();
  scheduled.prompt_scores.reset();
  request->negative_id = scheduler.add(std::move(scheduled));
  negatives.emplace(request->negative_id, request);
} catch (const UserError&) {
  scheduler.abort(request->id);
  throw;
}

void StepEngine::abort(RequestId id) {
  const std::lock_guard lock(parts_->mutex);
  parts_->scheduler.abort(id);
  parts_->aborted = true;
}

void StepEngine::Parts::abort_all() {
  for (const auto& [id, request] : live) scheduler.abort(id);
  aborted = true;
}

void StepEngine::abort_all() {
  const std::lock_guard lock(parts_->mutex);
  parts_->abort_all();
}

void StepEngine::end() {
  const std::lock_guard lock(parts_->mutex);
  parts_->ended = true;
  parts_->abort_all();
}

void StepEngine::pause() {
  const std::lock_guard lock(parts_->mutex);
  parts_->scheduler.pause(parts_->setup.config.destroy_pages_on_pause);
  parts_->paused = true;
  parts_->draft_pages_due |= parts_->setup.config.destroy_pages_on_pause;
}

void StepEngine::resume() {
  const std::lock_guard lock(parts_->mutex);
  parts_->scheduler.resume();
  parts_->paused = false;
}

void StepEngine::drain() {
  const std::lock_guard lock(parts_->mutex);
  parts_->scheduler.drain();
}

int64_t StepEngine::requests() const {
  const std::lock_guard lock(parts_->mutex);
  return int64_t(parts_->live.size());
}

std::optional<double> StepEngine::seconds_to_deadline() const {
  const std::lock_guard lock(parts_->mutex);
  const std::optional<double> deadline = parts_->scheduler.next_deadline();
  return deadline ? std::optional(std::max(0.0, *deadline - parts_->now())) : std::nullopt;
}

StepCounts StepEngine::counts() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->counts;
}

EngineMetrics StepEngine::metrics() const {
  Parts& p = *parts_;
  const std::lock_guard lock(p.mutex);
  EngineMetrics out = p.metrics;
  out.running_requests = p.scheduler.running();
  out.waiting_requests = p.scheduler.waiting();
  const PagePools& pools = p.scheduler.cache().pools();
  out.cache_pages_used = pools.used_pages();
  out.cache_bytes_used = pools.used_bytes(), out.cache_bytes_total = pools.budget_bytes();
  for (const CacheGroup& group : p.options.layout.groups)
    out.cache_pages_total = std::max(out.cache_pages_total, pools.budget_bytes() / group.page_bytes);
  out.preemptions = p.scheduler.preemptions();
  out.cache_resets = p.scheduler.idle_resets();
  out.cache_evictions = p.scheduler.cache().index().evictions();
  out.tokens_per_second = p.rate.per_second(p.now());
  return out;
}

}  // namespace easydel::esurge
