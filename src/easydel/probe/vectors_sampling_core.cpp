// Recorded cases of generation: scores after processors, and continuations (transformers' generate).
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/generation/generator.h"
#include "easydel/generation/processors.h"
#include "easydel/models/model.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

using generation::GenerationConfig, generation::TokenId;

std::vector<TokenId> tokens_of(const Value& list) {
  const std::vector<int64_t> ids = integers_of(list);
  return {ids.begin(), ids.end()};
}

Value ids_value(const std::vector<TokenId>& ids) { return list_of(std::vector<int64_t>(ids.begin(), ids.end())); }

// Numbers; infinities and NaN are words in these files.
std::vector<float> scores_of(const Value& list) {
  std::vector<float> out;
  for (const Value& item : list.items) {
    const std::string& word = item.scalar;
    out.push_back(word == "-inf"  ? -INFINITY
                  : word == "inf" ? INFINITY
                  : word == "nan" ? NAN
                                  : float(item.as_double().value_or(NAN)));
  }
  return out;
}

Value scores_value(std::span<const float> scores) {
  Value out = Value::list();
  for (const float score : scores)
    out.items.push_back(std::isfinite(score) ? Value::number(score)
                                             : Value::text(std::isnan(score) ? "nan"
                                                           : score < 0       ? "-inf"
                                                                             : "inf"));
  return out;
}

// The arguments of one of transformers' processors, as a config with the sequence that it sees.
struct ProcessorCase {
  GenerationConfig config;
  generation::Setting setting;
  std::vector<std::vector<TokenId>> prompts;  // one per row, if the processor needs them
  size_t prompt = 0, ignored = 0;             // tokens of the history: the prompt's, and those to ignore
};

// "repetition 1.2, min_length 20 (eos 2), top_k 10": several processors in words.
void read_words(const std::string& words, Value& keys) {
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(", ", at), words.size());
    std::string part = words.substr(at, end - at);
    at = end + 2;
    if (const size_t eos = part.find(" (eos "); eos != std::string::npos) {
      keys.set("eos_token_id", parse_yaml(part.substr(eos + 6, part.size() - eos - 7)));
      part.resize(eos);
    }
    const size_t space = part.find(' ');
    std::string name = part.substr(0, space);
    if (name == "repetition") name = "repetition_penalty";
    if (name == "no_repeat_ngram") name = "no_repeat_ngram_size";
    keys.set(name, parse_yaml(part.substr(space + 1)));
  }
}

ProcessorCase read_case(const VectorCase& vector) {
  const std::string& name = needed(vector, "name").scalar;
  const bool encoder = name.starts_with("encoder");
  ProcessorCase out;
  Value keys = Value::map();
  keys.set("top_k", Value::integer(0));
  for (const auto& [key, value] : needed(vector, "args").entries) {
    const auto number = [&, &value = value] { return value.as_int().value_or(0); };
    if (key == "chain")
      read_words(value.scalar, keys);
    else if (key == "min_tokens_to_keep")
      out.setting.keep = number();
    else if (key == "prompt_ignore_length")
      out.ignored = size_t(number());
    else if (key == "prompt_length" || key == "prompt_length_to_skip" || key == "input_ids_seq_length" ||
             key == "begin_index")
      out.prompt = size_t(number());
    else if (key == "encoder_input_ids")
      for (const Value& row : value.items) out.prompts.push_back(tokens_of(row));
    else if (key == "ngram_size" || key == "encoder_ngram_size")
      keys.set(encoder ? "encoder_no_repeat_ngram_size" : "no_repeat_ngram_size", value);
    else if (key == "penalty")
      keys.set(encoder ? "encoder_repetition_penalty" : "repetition_penalty", value);
    else if (key == "bos_token_id" && name.starts_with("forced"))
      keys.set("forced_bos_token_id", value);
    else if (key == "eos_token_id" && name.starts_with("forced"))
      keys.set("forced_eos_token_id", value);
    else if (key == "max_length" && name.starts_with("forced"))
      out.setting.max_length = number();
    else if (config::find_key(config::section_of<GenerationConfig>(), key))
      keys.set(key, value);
    else
      throw VectorNotBuilt("the argument '" + key + "'");
  }
  config::read(keys, out.config, vector.id).throw_if_any();
  out.config.do_sample = true;
  if (out.config.max_length) out.setting.max_length = *out.config.max_length;
  out.config.remove_invalid_values |= name == "remove_inf_nan";
  out.config.renormalize_logits |= name == "logit_normalization";
  return out;
}

Value answer_processors(const VectorCase& vector, const VectorFile& file) {
  const ProcessorCase test = read_case(vector);
  const auto own = [&](const char* key, const char* otherwise) -> const Value& {
    const Value& given = needed(vector, key);
    return given.is_list() ? given : *file.document.find(otherwise);
  };
  const Value &inputs = own("input_ids", "input_ids"), &before = own("scores_in", "scores");
  Value out = Value::list();
  for (size_t row = 0; row < inputs.items.size(); ++row) {
    std::vector<float> scores = scores_of(before.items.at(row));
    if (test.config.guidance_scale != 1)  // the second half of the rows belongs to the negative prompt
      generation::guide(scores, scores_of(before.items.at(inputs.items.size() + row)), test.config.guidance_scale);
    const std::vector<TokenId> tokens = tokens_of(inputs.items[row]);
    generation::Setting setting = test.setting;
    if (!test.prompts.empty()) setting.prompt = test.prompts.at(row);
    const generation::History history{std::span(tokens).subspan(test.ignored), test.prompt};
    setting.vocabulary = int64_t(scores.size());
    apply(make_chain(test.config, setting), history, scores);
    out.items.push_back(scores_value(scores));
  }
  return out;
}

// A model's folder is relative to a folder above the file's.
std::shared_ptr<models::Model> model_of(const VectorFile& file) {
  static std::map<std::filesystem::path, std::shared_ptr<models::Model>> loaded;
  const Value* const name = file.document.find("model");
  if (!name) refuse(file.path.string(), "names no \"model\"");
  for (std::filesystem::path above = files::absolute(file.path).parent_path();; above = above.parent_path()) {
    const std::filesystem::path folder = above / name->scalar;
    if (files::exists(folder / "config.json")) {
      std::shared_ptr<models::Model>& model = loaded[folder];
      if (!model) {
        models::LoadOptions options;
        options.dtype = models::DTypeSetting::fp32;
        model = models::load_model(folder, options);
      }
      return model;
    }
    if (above == above.parent_path())
      refuse(file.path.string(), "model '" + name->scalar + "' is in no folder above it");
  }
}

Value answer_generate(const VectorCase& vector, const VectorFile& file) {
  const std::shared_ptr<models::Model> model = model_of(file);
  const GenerationConfig config =
      generation::generation_config(model->folder(), generation::read_generation(needed(vector, "args")));
  if (!config.greedy()) throw VectorNotBuilt("torch's stream of random numbers");
  const Value &inputs = needed(vector, "input_ids"), &masks = needed(vector, "attention_mask");
  std::vector<generation::Request> requests;
  for (size_t row = 0; row < inputs.items.size(); ++row) {
    const std::vector<TokenId> padded = tokens_of(inputs.items[row]);
    const std::vector<int64_t> mask = integers_of(masks.items.at(row));
    generation::Request& request = requests.emplace_back();
    request.config = config;
    for (size_t i = 0; i < padded.size(); ++i)
      if (mask.at(i)) request.prompt.push_back(padded[i]);
  }
  std::vector<std::vector<TokenId>> sequences;
  Value scores = Value::list();
  size_t longest = 0;
  const auto each = size_t(config.num_return_sequences);
  for (const generation::Result& result : generation::Generator(*model, nullptr).run(requests)) {
    std::vector<TokenId>& sequence = sequences.emplace_back(tokens_of(inputs.items[sequences.size() / each]));
    sequence.insert(sequence.end(), result.tokens.begin(), result.tokens.end());
    if (result.end) sequence.push_back(*result.end);
    longest = std::max(longest, sequence.size());
    scores.items.push_back(Value::number(result.score));
  }
  // Shorter ones are padded; those of beams never with token 0.
  int64_t pad = config.pad_token_id.value_or(config.eos_token_id.empty() ? -1 : config.eos_token_id[0]);
  if (config.num_beams > 1 && pad == 0 && !config.eos_token_id.empty()) pad = config.eos_token_id[0];
  Value rows = Value::list();
  for (std::vector<TokenId>& sequence : sequences) {
    sequence.resize(longest, static_cast<TokenId>(pad));
    rows.items.push_back(ids_value(sequence));
  }
  Value out = Value::map();
  out.set("sequences", std::move(rows));
  if (config.num_beams > 1) out.set("sequences_scores", std::move(scores));
  return out;
}

Value expected_generate(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  for (const char* key : {"sequences", "sequences_scores"})
    if (const Value* recorded = vector.body.find(key)) out.set(key, *recorded);
  return out;
}

// Ids must be equal, scores of beams within 1e-4.
std::string compare_generate(const Value& expected, const Value& got) {
  const auto differ = [&](const char* key, double relative, double absolute) -> std::string {
    const Value *wanted = expected.find(key), *ours = got.find(key);
    if (!wanted) return "";
    if (!ours) return str(key, ": there are none");
    const std::string text = difference_of(*wanted, *ours, relative, absolute);
    return text.empty() ? "" : key + text;
  };
  const std::string ids = differ("sequences", 0, 0);
  return ids.empty() ? differ("sequences_scores", 1e-4, 1e-6) : ids;
}

}  // namespace

VectorKind sampling_generate_vectors() {
  return {.name = "sampling/generate",
          .answer = answer_generate,
          .expected = expected_generate,
          .compare = compare_generate};
}

VectorKind sampling_logits_processors_vectors() {
  return {.name = "sampling/logits_processors",
          .answer = answer_processors,
          .expected = [](const VectorCase& vector, const VectorFile&) { return needed(vector, "scores_out"); }};
}

}  // namespace easydel::probe
