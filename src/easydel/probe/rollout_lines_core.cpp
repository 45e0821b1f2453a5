#include "easydel/probe/rollout_lines.h"

#include <algorithm>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/train/sampler.h"
#include "easydel/train/sequence_logps.h"

namespace easydel::probe {
namespace {

std::vector<int32_t> prompt_of(const std::string& text, size_t number,
                               const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  const std::string where = str("prompt ", number);
  const Value line = parse_json(text, where);
  std::vector<int32_t> out;
  if (const Value* ids = line.find("prompt_token_ids")) {
    for (const Value& id : ids->items) {
      if (!id.as_int()) refuse(where, "prompt_token_ids holds '" + id.scalar + "' where a whole number belongs");
      out.push_back(int32_t(*id.as_int()));
    }
  } else if (const Value* prompt = line.find("prompt"); prompt && prompt->as_string()) {
    if (!tokenizer) refuse(where, "there is no tokenizer in the model's folder", "give prompt_token_ids");
    out = tokenizer->encode(*prompt->as_string());
  } else {
    refuse(where, "has neither a prompt nor prompt_token_ids", R"(give such as {"prompt": "Once"})");
  }
  return out;
}

Value numbers(std::span<const float> values) {
  Value out = Value::list();
  for (const float value : values) out.items.push_back(Value::number(double(value)));
  return out;
}

}  // namespace

void rollout_lines(const RolloutRequest& request, const elarge::Output& out) {
  models::LoadOptions load;
  load.dtype = request.dtype;
  load.param_dtype = models::DTypeSetting::fp32;
  load.training = true;
  const std::shared_ptr<models::Model> model = models::load_model(request.model, load);
  std::shared_ptr<const text::Tokenizer> tokenizer;
  if (text::Tokenizer::exists(request.model)) tokenizer = text::Tokenizer::load(request.model);

  generation::GenerationConfig config = generation::generation_config(request.model, {});
  config.do_sample = request.temperature > 0;
  if (config.do_sample) config.temperature = request.temperature;
  config.top_p = request.top_p, config.top_k = request.top_k, config.min_p = 0;
  config.max_new_tokens = request.max_new_tokens;
  config.num_return_sequences = request.group;
  std::vector<train::SampleRequest> requests;
  for (const std::string& line : request.lines)
    requests.push_back(
        {prompt_of(line, requests.size() + 1, tokenizer), train::draw_seed(request.seed, 0, requests.size())});
  const train::Sampler sampler(model, tokenizer);
  const std::vector<train::Sample> samples = sampler.sample(requests, config, request.batch);

  const auto group = size_t(request.group);
  const double temperature = config.do_sample ? config.temperature : 1;
  for (size_t begin = 0; begin < samples.size(); begin += size_t(request.batch)) {
    const size_t end = std::min(samples.size(), begin + size_t(request.batch));
    std::vector<data::Example> examples;
    std::vector<const data::Example*> all;
    for (size_t i = begin; i < end; ++i)
      examples.push_back(train::learned_example(requests[i / group].prompt, samples[i].ids));
    for (const data::Example& example : examples) all.push_back(&example);
    // As a step of training computes them, with gradients.
    const Tensor scored = train::score_sequences(*model, train::flat_batch(all), {}, {.temperature = temperature})
                              .logps.detach()
                              .to(at::kCPU)
                              .contiguous();
    const float* next = scored.const_data_ptr<float>();
    for (size_t i = begin; i < end; ++i) {
      const size_t count = samples[i].ids.size();
      Value line = Value::map(), ids = Value::list();
      for (const int32_t id : samples[i].ids) ids.items.push_back(Value::integer(id));
      line.set("ids", std::move(ids));
      line.set("logps", numbers(samples[i].logps));
      line.set("scored", numbers({next, count}));
      out(to_json(line) + "\n");
      next += count;
    }
  }
}

}  // namespace easydel::probe
