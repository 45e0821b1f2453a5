#include "esurge/same_bits.h"

#include <bit>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/nn/quantization.h"
#include "easydel/quant/format_config.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

// What these have of their own are a few loops: one schedule of a run shows whether they keep the promise.
Subject with_own_loops(std::string name, std::string folder, std::string dtype, std::string activation = {}) {
  Subject out{std::move(name), std::move(folder), std::move(dtype)};
  out.schedules = 1, out.activation = std::move(activation);
  return out;
}

}  // namespace

std::vector<Subject> subjects() {
  return {{"story_fp32", "models/stories260K-hf", "fp32"},
          {"story_bf16", "models/stories260K-hf", "bf16"},
          {"gemma3_windows", "hf_goldens/gemma3_text", "bf16"},
          {"gpt_oss_sinks_experts", "hf_goldens/gpt_oss", "bf16"},
          {"gemma2_softcaps", "hf_goldens/gemma2", "bf16"},
          {"llama4_chunks", "hf_goldens/llama4_text", "fp32"},
          {"deepseek_v3_mla", "hf_goldens/deepseek_v3", "bf16"},
          {"qwen3_next_hybrid", "hf_goldens/qwen3_next", "fp32"},
          {"mamba2_states", "hf_goldens/mamba2", "fp32"},
          {"phi3_longrope", "hf_goldens/phi3_longrope", "fp32"},
          {"story_a8bit", "models/stories260K-hf", "bf16", true},
          with_own_loops("minimax_lightning", "hf_goldens/minimax", "fp32"),
          with_own_loops("rwkv_averages", "hf_goldens/rwkv", "bf16"),
          with_own_loops("xlstm_matrices", "hf_goldens/xlstm", "fp32"),
          with_own_loops("falcon_slopes", "hf_goldens/falcon_alibi", "bf16"),
          with_own_loops("story_mish", "models/stories260K-hf", "fp32", "mish")};
}

std::vector<Subject> coded_cache_subjects() {
  using enum nn::CacheFormat;
  return {{"story_int8", "models/stories260K-hf", "bf16", false, int8},
          {"story_int4_values", "models/stories260K-hf", "bf16", false, int4_values},
          {"gemma3_int4_values", "hf_goldens/gemma3_text", "fp32", false, int4_values},
          {"story_int8_groups", "models/stories260K-hf", "bf16", false, {int8, 4}},
          {"deepseek_v3_int8", "hf_goldens/deepseek_v3", "bf16", false, int8},
          {"deepseek_v3_fp8", "hf_goldens/deepseek_v3", "fp32", false, e4m3}};
}

std::string bits_of(const RequestOutput& output) {
  std::string text = output.error;
  const auto add = [&](const std::vector<TokenLogprobs>& rows) {
    for (const TokenLogprobs& row : rows) {
      text += str(" ", row.chosen, ":");
      for (size_t i = 0; i < row.token_ids.size(); ++i)
        text += str(row.token_ids[i], "=", std::bit_cast<uint32_t>(row.logprobs[i]), ",");
    }
  };
  for (const CompletionOutput& one : output.outputs) {
    text += str("\n", one.finish_reason ? name_of(*one.finish_reason) : "open", " '", one.text, "'");
    for (const TokenId id : one.token_ids) text += str(" ", id);
    if (one.score) text += str(" score ", std::bit_cast<uint32_t>(*one.score));
    text += str(" sum ", std::bit_cast<uint64_t>(one.cumulative_logprob));
    add(one.logprobs);
  }
  add(output.prompt_logprobs);
  return text;
}

std::vector<std::string> answers(StepEngine& engine, const std::vector<Request>& requests) {
  std::vector<std::string> out(requests.size());
  for (size_t i = 0; i < requests.size(); ++i)
    engine.add(requests[i], [&out, i](const RequestOutput& output) { out[i] = bits_of(output); });
  while (engine.step()) {
  }
  return out;
}

std::unique_ptr<StepEngine> engine_for(EngineSetup setup, const std::vector<Request>& requests, int64_t pages,
                                       bool roomy) {
  for (;; pages += (pages + 7) / 8) {
    setup.pages = roomy ? 4 * pages : pages;
    auto engine = std::make_unique<StepEngine>(setup);
    try {
      for (const Request& request : requests) engine->add(request, {});
      return std::make_unique<StepEngine>(setup);
    } catch (const UserError&) {
    }
  }
}

void SameBits::SetUpTestSuite() { log::set_level(log::Level::warning); }
void SameBits::TearDownTestSuite() { log::set_level(log::Level::info); }

void SameBits::SetUp() {
  models::LoadOptions options;
  options.dtype = models::dtype_setting(GetParam().dtype, "dtype");
  const auto folder = test::test_data(GetParam().folder);
  if (GetParam().folder.starts_with("hf_goldens")) {
    // Their own limit is 64.
    options.overrides = Value::map();
    options.overrides.set("max_position_embeddings", Value::integer(512));
  }
  if (!GetParam().activation.empty()) {
    options.overrides = Value::map();
    options.overrides.set("hidden_act", Value::text(GetParam().activation));
  }
  if (GetParam().coded) options.quantization = nn::Quantization{quant::format_of({"a8bit"}, "test")};
  options.cache_format = GetParam().cache;
  model_ = models::load_model(folder, options);
  options.dtype = models::dtype_setting(GetParam().dtype == "bf16" ? "fp32" : "bf16", "dtype");
  draft_ = models::load_model(folder, options);
  if (text::Tokenizer::exists(folder)) tokenizer_ = text::Tokenizer::load(folder);
}

EngineSetup SameBits::setup(int64_t page_size, std::optional<int64_t> pages) const {
  EngineSetup out;
  out.model = model_, out.tokenizer = tokenizer_;
  out.config.max_model_len = 512;
  out.config.max_num_batched_tokens = 512;
  out.config.page_size = page_size;
  out.pages = pages;
  out.draft_price = 0;  // guesses are tried whatever they take
  return out;
}

std::vector<Request> SameBits::requests(Random& random, int64_t count) const {
  std::vector<TokenId> text;
  const int64_t longest = GetParam().longest, vocabulary = model_->vocabulary();
  for (int64_t i = 0; i < longest; ++i) text.push_back(TokenId(random.from(3, vocabulary - 1)));
  std::vector<Request> out;
  for (int64_t i = 0; i < count; ++i) {
    Request& request = out.emplace_back();
    SamplingParams& sampling = request.sampling;
    const int64_t length = random.chance(30) ? random.from(1, longest - 50) : random.from(1, 40);
    std::vector<TokenId> prompt(text.begin(), text.begin() + random.from(0, length));
    while (int64_t(prompt.size()) < length) prompt.push_back(TokenId(random.from(3, vocabulary - 1)));
    request.prompt = prompt;
    sampling.max_tokens = random.from(1, 40);
    sampling.return_token_ids = true;
    sampling.output_kind = OutputKind::final_only;
    if (random.chance(50)) {
      sampling.temperature = 0;
    } else {
      sampling.temperature = double(random.from(5, 15)) / 10;
      sampling.n = random.chance(40) ? random.from(2, 4) : 1;
      if (sampling.n > 1 && random.chance(30)) sampling.best_of = sampling.n + 1;
      if (random.chance(30)) sampling.top_k = random.from(1, 30);
      if (random.chance(30)) sampling.top_p = 0.9;
      if (random.chance(20)) sampling.min_p = 0.02;
    }
    sampling.seed = random.from(0, 1000);
    if (random.chance(30)) sampling.presence_penalty = 0.5, sampling.frequency_penalty = 0.3;
    if (random.chance(20)) sampling.repetition_penalty = 1.2;
    if (random.chance(20)) sampling.ignore_eos = true;
    if (random.chance(60)) sampling.logprobs = random.from(0, 5);
    if (random.chance(50)) sampling.prompt_logprobs = random.from(0, 3);
    if (random.chance(15)) sampling.logprobs_mode = LogprobsMode::processed;
    if (random.chance(15)) sampling.min_tokens = random.from(0, *sampling.max_tokens);
    if (random.chance(10)) sampling.allowed_token_ids = {5, 9, 17, 33, 64, 65, 66, 100, 101, 102};
    if (random.chance(15)) sampling.cache_salt = "own";
    if (tokenizer_ && random.chance(25)) sampling.stop = config::Many<std::string>{"the", ". "};
    if (tokenizer_ && random.chance(15)) {
      GuidedDecoding guided;
      guided.regex = "[A-Z][a-z]{2,9}( [a-z]{1,7}){1,4}\\.";
      sampling.guided_decoding = guided;
      sampling.stop_token_ids = {2};
      sampling.allowed_token_ids.reset();
    }
  }
  for (Request& request : out) {
    if (!random.chance(15)) continue;
    SamplingParams& sampling = request.sampling;
    const int64_t beams = random.from(2, 4);
    sampling.extra_args = Value::map();
    sampling.extra_args.set("num_beams", Value::integer(beams));
    sampling.n = random.from(1, beams);
    sampling.best_of.reset();
    sampling.skip_special_tokens = true;  // so that stop strings are those of the Generator
  }
  for (Request& request : out) {
    if (!random.chance(15)) continue;
    Value& extra = request.sampling.extra_args;
    if (!extra.is_map()) extra = Value::map();
    extra.set("guidance_scale", Value::number(double(random.from(11, 25)) / 10));
    if (random.chance(50)) continue;
    std::vector<TokenId> negative(text.begin(), text.begin() + random.from(0, 20));
    for (int64_t left = random.from(1, 20); left > 0; --left)
      negative.push_back(TokenId(random.from(3, vocabulary - 1)));
    request.negative_prompt = negative;
  }
  return out;
}

std::vector<std::string> SameBits::alone(const std::vector<Request>& requests) const {
  EngineSetup own = setup(128, 64);
  own.config.enable_prefix_caching = false;
  StepEngine engine(own);
  std::vector<std::string> out;
  for (const Request& request : requests) {
    out.emplace_back();
    engine.add(request, [&](const RequestOutput& output) { out.back() = bits_of(output); });
    while (engine.step()) {
    }
  }
  return out;
}

}  // namespace easydel::esurge
