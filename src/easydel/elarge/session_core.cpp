#include "easydel/elarge/session_core.h"

#include <algorithm>
#include <cstdio>
#include <future>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/elarge/adapter_config.h"
#include "easydel/elarge/divided_lines.h"
#include "easydel/elarge/engine_ranks.h"
#include "easydel/elarge/generate_by_engine.h"
#include "easydel/elarge/joint_lines.h"
#include "easydel/elarge/line_answers.h"
#include "easydel/elarge/load_options.h"
#include "easydel/elarge/preload_checks_core.h"
#include "easydel/elarge/push.h"
#include "easydel/elarge/served_model.h"
#include "easydel/elarge/training_benchmarks.h"
#include "easydel/esurge/engine.h"
#include "easydel/generation/constrained.h"
#include "easydel/generation/generator.h"
#include "easydel/hub/resolve.h"
#include "easydel/models/adapter.h"
#include "easydel/models/adapters.h"
#include "easydel/models/model.h"
#include "easydel/models/registry_config.h"
#include "easydel/text/render_chat.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/progress.h"
#include "easydel/train/state_files.h"
#include "easydel/train/trainer.h"

namespace easydel::elarge {
namespace {

class TorchSession final : public Session {
 public:
  TorchSession(const Config& config, bool trains) : config_(config), trains_(trains) {
    const mesh::World world = mesh::read_world();
    if (world.size > 1) team_ = collective::Team::join(world, mesh_of(config, world.size));
  }
  // Not to train.
  TorchSession(const Config& config, std::shared_ptr<const collective::Team> team)
      : config_(config), trains_(false), team_(std::move(team)) {}

  std::shared_ptr<models::Model> build_model() override {
    read_tokenizer_ahead();
    return model();
  }
  std::shared_ptr<const text::Tokenizer> build_tokenizer() override { return tokenizer(); }

  std::shared_ptr<models::Model> build_side_model(const std::string& section) override {
    const std::optional<ModelConfig>& side = side_config(section);
    if (!side) return nullptr;
    std::shared_ptr<models::Model>& built = side_models_[section];
    if (!built) built = models::load_model(folder_of(*side, section), load_options(*side, section, false));
    return built;
  }

  std::shared_ptr<data::Dataset> build_dataset() override {
    return train::build_dataset(config_.trainer, config_.mixture, tokenizer());
  }

  std::shared_ptr<train::Trainer> build_trainer() override {
    prepare_benchmarks();
    train::TrainerParts parts;
    parts.trainer = config_.trainer;
    parts.mixture = config_.mixture;
    if (team_->first()) parts.checkpoints = train::checkpoints_before_loading(config_.trainer, folder());
    if (parts.checkpoints) parts.checkpoints->lock();
    parts.model = model();
    parts.load = load_options(config_.model, "model", true);
    const train::MethodFacts& facts = config_.trainer.facts();
    using enum train::SideModelUse;
    if (facts.reference != none) parts.side.reference = side_model("reference_model");
    if (facts.teacher != none) parts.side.teacher = side_model("teacher_model");
    if (facts.reward != none && config_.reward_model) parts.side.rewards.push_back(side_model("reward_model"));
    parts.tokenizer = tokenizer();
    parts.checkpointing = checkpointing_of(config_);
    parts.save_dtype = config_.loader.param_dtype;
    parts.document = normalised(config_);
    parts.model_name = config_.model.name_or_path;
    struct Kept {  // the bar outlives the trainer
      std::unique_ptr<train::Watcher> progress;
      std::optional<train::Trainer> trainer;
    };
    const auto kept = std::make_shared<Kept>();
    if (team_->first()) kept->progress = train::make_progress(config_.trainer.common.progress_bar_type, stderr);
    parts.watcher = kept->progress.get();
    parts.benchmarks = benchmarks_.get();
    kept->trainer.emplace(std::move(parts));
    return {kept, &*kept->trainer};
  }

  esurge::EngineSetup build_engine_setup() override { return engine_setup_of(engine_model()); }

  std::shared_ptr<esurge::Engine> build_esurge() override { return make_engine(build_engine_setup(), config_); }

  std::string describe_engine() override { return build_esurge()->info().options.report(); }

  server::ServedModel build_served_model(double memory_share) override {
    const std::shared_ptr<models::Model> model = engine_model();
    if (is_encoder(*model))
      return served_encoder(model, tokenizer_if_any(), config_, ranks_ ? ranks_->lead() : nullptr);
    Config config = config_;
    config.esurge.hbm_utilization *= memory_share;
    esurge::EngineSetup setup = engine_setup_of(model);
    setup.config = config.esurge;
    const std::shared_ptr<const text::Tokenizer> tokenizer = setup.tokenizer;
    return served_model(make_engine(std::move(setup), config), tokenizer, *model, config);
  }

  void prepare_engine() override {
    read_tokenizer_ahead();
    engine_model();
  }

  std::unique_ptr<EngineFollower> join_engine() override {
    engine_model();
    return ranks_->join();
  }

  std::unique_ptr<Session> open_beside(const Config& config) override {
    return std::make_unique<TorchSession>(config, team_);
  }

  TrainerOutput train(const Output& out) override {
    const std::shared_ptr<train::Trainer> trainer = build_trainer();
    if (out) out(trainer->plan().text());
    const train::Outcome outcome = trainer->run();
    if (outcome.signal != 0) throw Interrupted(outcome.signal);
    const bool is_last = outcome.checkpoint.filename() == str("run-", outcome.step);
    saved_ = is_last || outcome.best_step ? outcome.checkpoint : std::filesystem::path();
    if (out) out(told(outcome));
    if (config_.trainer.common.push_to_hub) push(out);
    TrainerOutput result{outcome.step, outcome.steps, {{"train_loss", outcome.train_loss}}, outcome.checkpoint};
    if (outcome.before) result.metrics["eval_loss_before"] = outcome.before->loss;
    if (outcome.after) result.metrics["eval_loss"] = outcome.after->loss;
    return result;
  }

  void answer_lines(const std::vector<std::string>& lines, const LineSettings& settings,
                    const OnLineAnswer& on_answer) override {
    joint_.give(lines, settings);
    answer_here(lines, settings, on_answer);
  }

  Value on_first_rank(const std::function<Value()>& work) override {
    return joint_.run(*team_, work, [this](const std::vector<std::string>& lines, const LineSettings& settings) {
      answer_here(lines, settings, [](size_t, const std::string&) {});
    });
  }

  void prepare_benchmarks() override {
    if (!benchmarks_ && !config_.trainer.common.benchmarks.empty())
      benchmarks_ = std::make_unique<TrainingBenchmarks>(config_, *this, team_->first());
  }

  hub::Pushed push_to_hub(const std::string& where, const hub::PushOptions& options) override {
    if (team_->first()) hub::check_push(where, options);
    if (!saved_.empty()) return push_checkpoint(where, options);
    const std::filesystem::path pattern = team_->first() ? files::make_temporary_folder("easydel-push") : "";
    hub::Pushed pushed;
    try {
      models::save_model(*model(), pattern, config_.loader.param_dtype);
      if (team_->first()) {
        if (has_tokenizer()) text::save_tokenizer(*tokenizer(), pattern);
        pushed = hub::push_folder(where, pattern, options);
      }
    } catch (...) {
      if (team_->first()) files::remove_all(pattern);
      throw;
    }
    if (team_->first()) files::remove_all(pattern);
    return pushed;
  }

  std::vector<Generated> generate(const GenerateRequest& request) override {
    const generation::GenerationConfig config = generation::generation_config(folder(), request.generation);
    check_together(config);  // before a model is loaded
    std::vector<text::TokenId> negative;
    if (!request.negative_prompt.empty()) negative = tokenizer()->encode(request.negative_prompt);
    if (!negative.empty() && config.guidance_scale == 1)
      log::warning("the negative prompt has no effect without guidance_scale");
    std::vector<generation::Request> requests;
    for (const std::string& prompt : request.prompts)
      requests.push_back({tokenizer()->encode(prompt), config, negative});
    for (const Value& conversation : request.conversations)
      requests.push_back({render(conversation, request.chat_template), config, negative});
    for (size_t i = 0; i < requests.size(); ++i)
      if (const std::string& name = request.adapter_of(i); !name.empty() && !request.engine)
        requests[i].adapter = adapters().get(name, "adapter");
    if (request.constraint) constrain(requests, *request.constraint, config);
    if (request.engine && team_->size() > 1) return generate_on_ranks(request, requests);
    if (request.engine) return generate_by_engine(request, requests);
    const auto on_text = [&](size_t index, text::TokenId, std::string_view piece) {
      if (request.on_text && team_->first()) request.on_text(index, piece);
      return true;
    };
    const auto generated = [&](size_t index, const generation::Result& result) {
      Generated got;
      got.prompt = index / size_t(config.num_return_sequences);
      got.text = result.text;
      got.prompt_tokens = result.prompt_tokens, got.new_tokens = int64_t(result.tokens.size());
      got.tokens = result.tokens;
      got.finish_reason = generation::name_of(result.reason);
      if (config.num_beams > 1) got.score = result.score;
      got.prefill_seconds = result.prefill_seconds, got.decode_seconds = result.decode_seconds;
      return got;
    };
    const auto on_result = [&](size_t index, const generation::Result& result) {
      if (request.on_result && team_->first()) request.on_result(generated(index, result));
    };
    std::vector<Generated> out;
    generation::Generator generator(*model(), tokenizer(), {.batch = request.batch, .stop = request.stop});
    for (const generation::Result& result : generator.run(requests, on_text, on_result))
      out.push_back(generated(out.size(), result));
    return out;
  }

 private:
  void answer_here(const std::vector<std::string>& lines, const LineSettings& settings, const OnLineAnswer& on_answer) {
    const LineModel line_model{model(),
                               tokenizer_if_any(),
                               [this](const std::vector<generation::Request>& requests,
                                      const GenerateRequest& request) { return generate_by_engine(request, requests); },
                               state_exchange(*team_),
                               common_cache_bytes(*team_, config_.esurge.hbm_utilization),
                               config_.esurge.hbm_utilization};
    answer_divided(
        *team_, lines,
        [&](const std::vector<std::string>& own, const OnLineAnswer& on_own) {
          elarge::answer_lines(own, line_model, settings, on_own);
        },
        on_answer);
  }

  std::vector<Generated> generate_by_engine(const GenerateRequest& request,
                                            const std::vector<generation::Request>& requests) {
    if (team_->size() > 1)
      refuse("generate.engine", "the engine is not built yet for lines on several ranks",
             "use generator, or one process");
    return elarge::generate_by_engine(*build_esurge(), requests, request);
  }

  // The first rank's engine generates; its results are those of every rank.
  std::vector<Generated> generate_on_ranks(const GenerateRequest& request,
                                           const std::vector<generation::Request>& requests) {
    const std::shared_ptr<models::Model> model = engine_model();
    if (!team_->first()) {
      EngineFollowers engines;
      engines.add(ranks_->join());
      engines.wait();
    }
    const auto work = [&] {
      const auto engine = make_engine(engine_setup_of(model), config_);
      return document_of(elarge::generate_by_engine(*engine, requests, request));
    };
    return generated_of(joint_.run(*team_, work, [](const std::vector<std::string>&, const LineSettings&) {}));
  }

  void constrain(std::vector<generation::Request>& requests, const text::constrain::Language& language,
                 const generation::GenerationConfig& config) {
    if (config.eos_token_id.empty())
      refuse("constrained output", "the model has no end token, so no text could end", "give --eos-token-id");
    const auto tokens = std::make_shared<const text::constrain::TokenBytes>(
        tokenizer(), std::vector<text::TokenId>(config.eos_token_id.begin(), config.eos_token_id.end()));
    const auto constraint =
        std::make_shared<const text::constrain::Constraint>(text::constrain::compile(language), tokens);
    for (generation::Request& each : requests) {
      if (each.prompt.empty() && config.bos_token_id) each.prompt = {static_cast<text::TokenId>(*config.bos_token_id)};
      each.allowed = generation::allowed_by(constraint, each.prompt.size());
    }
  }

  // The model is saved already, in a checkpoint that also contains files that only a trainer reads.
  hub::Pushed push_checkpoint(const std::string& where, hub::PushOptions options) const {
    if (!team_->first()) return {};
    options.filter = [](const std::string& name) { return !train::is_of_training(name); };
    const bool merged = files::exists(saved_ / "config.json");
    return hub::push_folder(where, merged ? saved_ : saved_ / "adapter", options);
  }

  static std::string told(const train::Outcome& outcome) {
    std::string text;
    if (outcome.before && outcome.after && outcome.before->step != outcome.after->step)
      text += str("held-out loss ", outcome.before->loss, " before, ", outcome.after->loss, " after\n");
    if (!outcome.checkpoint.empty()) text += "saved in " + outcome.checkpoint.string() + "\n";
    return text;
  }

  const std::optional<ModelConfig>& side_config(const std::string& section) const {
    return section == "teacher_model"     ? config_.teacher_model
           : section == "reference_model" ? config_.reference_model
                                          : config_.reward_model;
  }

  // With its own tokenizer, because its token ids may differ from the trained model's.
  train::SideModel side_model(const std::string& section) {
    train::SideModel out{build_side_model(section), nullptr};
    if (!out.model) return out;
    const std::optional<std::string>& named = side_config(section)->tokenizer;
    const std::optional<std::string> chat_template = read_chat_template(*side_config(section), section);
    const std::filesystem::path folder =
        named ? hub::resolve_model(*named, section + ".tokenizer") : out.model->folder();
    if (named || text::Tokenizer::exists(folder)) out.tokenizer = text::Tokenizer::load(folder, chat_template);
    return out;
  }

  void push(const Output& out) {
    const hub::Pushed pushed = push_to_hub("trainer.push_to_hub", push_options(config_.trainer.common));
    if (out) out(pushed_text(*config_.trainer.common.hub_model_id, pushed));
  }

  bool has_tokenizer() const { return config_.model.tokenizer || text::Tokenizer::exists(folder()); }

  std::filesystem::path folder() const { return folder_of(config_.model, "model"); }

  models::LoadOptions load_options(const ModelConfig& model, const std::string& section, bool training) {
    models::LoadOptions options = elarge::load_options(config_, model, section, training, team_);
    // A sequence is scored at its last token that is not padding, which the tokenizer names, as in TRL.
    const bool scores = training && options.task == models::Task::sequence_classification;
    if (scores && !options.overrides.find("pad_token_id"))
      if (const auto padding = tokenizer()->pad_id() ? tokenizer()->pad_id() : tokenizer()->eos_id())
        options.overrides.set("pad_token_id", Value::integer(*padding));
    return options;
  }

  // A local tokenizer is read while the model is loaded; its errors are reported when it is used.
  void read_tokenizer_ahead() {
    if (tokenizer_ || loading_.valid()) return;
    const bool own = !config_.model.tokenizer && files::is_folder(config_.model.name_or_path);
    const std::string name = own ? tokenizer_folder().string() : config_.model.tokenizer.value_or("");
    if (files::is_folder(name))
      loading_ = std::async(std::launch::async, &text::Tokenizer::load, name,
                            read_chat_template(config_.model, "model"), added_tokens(config_, trains_));
  }

  const std::shared_ptr<models::Model>& model() {
    if (model_) return model_;
    if (trains_ && !config_.lora && config_.quantization.weight_format() && team_->first())
      log::info(
          "quantization: codes are not trained; adapters over them are (lora: {r: 16, alpha: 32, target_modules: "
          "all-linear})");
    model_ = models::load_model(folder(), load_options(config_.model, "model", trains_));
    if (config_.loader.verbose && team_->first())
      log::info("loaded ", config_.model.name_or_path, " (", model_->model_type(), ")");
    return model_;
  }

  // The other ranks are connected first: if the engine cannot be made, they are told.
  esurge::EngineSetup engine_setup_of(std::shared_ptr<models::Model> model) {
    const std::shared_ptr<esurge::RankLeader> leader = ranks_ ? ranks_->lead() : nullptr;
    esurge::EngineSetup setup = engine_setup(std::move(model), tokenizer_if_any(), config_);
    setup.ranks = leader;
    return setup;
  }

  // The model that the engine computes with: with several ranks on a mesh of the engine's own. Collective.
  std::shared_ptr<models::Model> engine_model() {
    if (team_->size() == 1) {
      if (std::ranges::any_of(config_.esurge.sharding_axis_dims, [](int64_t dim) { return dim > 1; }))
        log::warning("esurge.sharding_axis_dims has no effect here: the engine runs on one rank");
      return model();
    }
    if (!ranks_) ranks_ = std::make_unique<EngineRanks>(config_, team_);
    return ranks_->model(model_, [this](std::shared_ptr<const collective::Team> team) {
      return models::load_model(folder(),
                                elarge::load_options(config_, config_.model, "model", false, std::move(team)));
    });
  }

  const std::shared_ptr<const text::Tokenizer>& tokenizer() {
    if (tokenizer_) return tokenizer_;
    tokenizer_ = loading_.valid()
                     ? loading_.get()
                     : text::Tokenizer::load(tokenizer_folder(), read_chat_template(config_.model, "model"),
                                             added_tokens(config_, trains_));
    if (!trains_ && team_->first()) warn_of_changed_chat(config_.model, *tokenizer_);
    return tokenizer_;
  }

  // Those of the section.
  models::Adapters& adapters() {
    if (adapters_) return *adapters_;
    auto all = std::make_unique<models::Adapters>(model());
    for (const NamedAdapter& one : named_adapters(config_))
      one.sum ? all->add_sum(one.name, *one.sum, one.shares) : all->add(one.name, one.folder);
    adapters_ = std::move(all);
    return *adapters_;
  }

  std::shared_ptr<const text::Tokenizer> tokenizer_if_any() { return has_tokenizer() ? tokenizer() : nullptr; }

  // The given one, the model's own, or that which was saved with its adapter.
  std::filesystem::path tokenizer_folder() const {
    if (config_.model.tokenizer) return hub::resolve_model(*config_.model.tokenizer, "model.tokenizer");
    const models::FoundModel found = found_model(config_.model, "model");
    return !found.adapter.empty() && text::Tokenizer::exists(found.adapter) ? found.adapter : found.model;
  }

  std::vector<text::TokenId> render(const Value& conversation, const std::optional<std::string>& source) {
    if (!chat_ || chat_source_ != source) chat_ = std::make_unique<text::ChatRenderer>(tokenizer(), source);
    chat_source_ = source;
    text::ChatOptions options;
    options.add_generation_prompt = true;
    return chat_->ids(conversation, options);
  }

  Config config_;
  bool trains_;
  std::shared_ptr<const collective::Team> team_ = collective::Team::alone();
  JointLines joint_;
  std::unique_ptr<EngineRanks> ranks_;  // null: one rank, or there was no engine yet
  std::unique_ptr<TrainingBenchmarks> benchmarks_;
  std::shared_ptr<models::Model> model_;
  std::unique_ptr<models::Adapters> adapters_;
  std::filesystem::path saved_;  // the checkpoint that equals the model; empty: none
  std::map<std::string, std::shared_ptr<models::Model>> side_models_;  // by section
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::future<std::shared_ptr<const text::Tokenizer>> loading_;
  std::unique_ptr<const text::ChatRenderer> chat_;  // created for the first conversation
  std::optional<std::string> chat_source_;          // the template that it was made with; none: the tokenizer's
};

}  // namespace

std::optional<nn::Quantization> quantization_of(const QuantizationConfig& config) {
  const auto weights = config.weight_format();
  if (!weights) return std::nullopt;
  return nn::Quantization{weights->format, weights->pattern, weights->linear_pattern, weights->simulate,
                          weights->where,  weights->stored,  weights->of_codes};
}

std::unique_ptr<Session> open_session(const Config& config, bool trains) {
  return std::make_unique<TorchSession>(config, trains);
}

}  // namespace easydel::elarge
