#include "easydel/train/previews.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/text/render_chat.h"
#include "easydel/train/completion_source.h"

namespace easydel::train {
namespace {

constexpr int64_t default_new_tokens = 64;
constexpr size_t shown_tokens = 32;  // of a text without a prompt, at most: the rest is for the model

generation::GenerationConfig generation_of(const TrainerConfig& config, const models::Model& model) {
  Value keys = Value::map();
  keys.set("max_new_tokens", Value::integer(config.generation_max_new_tokens.value_or(default_new_tokens)));
  const auto& temperature = config.generation_temperature;
  if (temperature || config.generation_top_p || config.generation_top_k)
    keys.set("do_sample", Value::boolean(temperature.value_or(1) > 0));
  if (temperature && *temperature > 0) keys.set("temperature", Value::number(*temperature));
  if (config.generation_top_p) keys.set("top_p", Value::number(*config.generation_top_p));
  if (config.generation_top_k) keys.set("top_k", Value::integer(*config.generation_top_k));
  generation::GenerationConfig out = generation::generation_config(model.folder(), generation::read_generation(keys));
  out.max_length.reset();
  return out;
}

}  // namespace

Previews::Previews(const TrainerConfig& config, std::shared_ptr<const models::Model> model,
                   std::shared_ptr<const text::Tokenizer> tokenizer, std::shared_ptr<const data::Dataset> data)
    : tokenizer_(tokenizer),
      sampler_(model, tokenizer),
      examples_at_once_(config.generation_num_prompts),
      interval_(config.generation_interval.value_or(1)),
      seed_(uint64_t(config.shuffle_seed_train)),
      generation_(generation_of(config, *model)) {
  set_end_tokens(generation_, *model, tokenizer.get());
  if (config.generation_use_train_prompts) data_ = std::move(data);
  if (data_) check(data_->examples_count() > 0, "previews of no examples");  // a stream is refused now, not at a step
  for (const Value& prompt : generation_prompts(config)) {
    if (!prompt.is_list()) {
      prompts_.push_back(tokenizer->encode(prompt.scalar));
    } else {
      text::ChatOptions options;
      options.add_generation_prompt = true;
      prompts_.push_back(text::ChatRenderer(tokenizer, std::nullopt).ids(prompt, options));
    }
    if (prompts_.back().empty())
      refuse("trainer.generation_prompts", str("prompt ", prompts_.size(), " has no tokens"), "give a longer one");
  }
}

// What comes before the first label; of a text, which is learned from its beginning, a part.
std::vector<int32_t> Previews::prompt_of(const data::Example& example) const {
  const size_t length = example.lengths.empty() ? 0 : size_t(example.lengths.front());
  const std::vector<int32_t> labels = example.unshifted_labels(/*shifted=*/true);
  size_t end = 0;
  while (end < length && labels[end] == data::no_label) ++end;
  if (end <= 1) end = std::min(shown_tokens, (length + 1) / 2);
  return {example.tokens.begin(), example.tokens.begin() + std::ptrdiff_t(end)};
}

std::vector<Preview> Previews::after(int64_t step) const {
  std::vector<SampleRequest> requests;
  const auto add = [&](std::vector<int32_t> prompt) {
    requests.push_back({std::move(prompt), draw_seed(seed_, step, requests.size())});
  };
  for (const std::vector<int32_t>& prompt : prompts_) add(prompt);
  const int64_t count = data_ ? data_->examples_count() : 0;
  const int64_t first = step / interval_ * examples_at_once_;  // each time other ones
  for (int64_t i = 0; i < std::min(examples_at_once_, count); ++i) add(prompt_of(data_->at((first + i) % count)));
  std::vector<Preview> out;
  const std::vector<Sample> samples = sampler_.sample(requests, generation_);
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::vector<int32_t>& prompt =
        requests[i / size_t(std::max<int64_t>(1, generation_.num_return_sequences))].prompt;
    out.push_back({tokenizer_->decode(prompt, false), text::decode_continuation(*tokenizer_, prompt, samples[i].ids),
                   int64_t(samples[i].ids.size()), std::string(name_of(samples[i].reason))});
  }
  return out;
}

Value as_record(const Preview& preview, int64_t step) {
  Value out = Value::map();
  out.set("step", Value::integer(step));
  out.set("prompt", Value::text(preview.prompt));
  out.set("text", Value::text(preview.text));
  out.set("new_tokens", Value::integer(preview.new_tokens));
  out.set("finish_reason", Value::text(preview.finish_reason));
  return out;
}

}  // namespace easydel::train
