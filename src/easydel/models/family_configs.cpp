#include "easydel/models/family_configs.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/quant/file_config.h"

namespace easydel::models {
namespace {

constexpr std::pair<Task, std::string_view> language_endings[] = {
    {Task::causal_lm, "ForCausalLM"}, {Task::causal_lm, "LMHeadModel"}, {Task::masked_lm, "ForMaskedLM"}};
// Endings of the classes that every family has.
constexpr std::pair<Task, std::string_view> endings[] = {{Task::base, "Model"},
                                                         {Task::sequence_classification, "ForSequenceClassification"},
                                                         {Task::token_classification, "ForTokenClassification"},
                                                         {Task::question_answering, "ForQuestionAnswering"}};

// Alphabetical.
std::vector<FamilyConfig>& all_configs() {
  static const std::array built = {
      FamilyConfig{"apertus", {"ApertusForCausalLM"}},
      FamilyConfig{"arcee", {"ArceeForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"arctic", {"ArcticForCausalLM"}},
      FamilyConfig{"bamba", {"BambaForCausalLM"}},
      FamilyConfig{"bert", {"BertForMaskedLM", "BertLMHeadModel"}},
      FamilyConfig{"bitnet", {"BitNetForCausalLM"}},
      FamilyConfig{"bloom", {"BloomForCausalLM"}, false, {.token_classes = "classifier"}},
      FamilyConfig{"camembert", {"CamembertForMaskedLM", "CamembertForCausalLM"}},
      FamilyConfig{"cohere", {"CohereForCausalLM"}},
      FamilyConfig{"cohere2", {"Cohere2ForCausalLM"}},
      FamilyConfig{"cwm", {"CwmForCausalLM"}},
      FamilyConfig{"dbrx", {"DbrxForCausalLM"}},
      FamilyConfig{"deepseek_v2", {"DeepseekV2ForCausalLM"}},
      FamilyConfig{"deepseek_v3", {"DeepseekV3ForCausalLM"}},
      FamilyConfig{"deepseek_v32", {"DeepseekV32ForCausalLM"}},
      FamilyConfig{"dots1", {"Dots1ForCausalLM"}},
      FamilyConfig{"ernie4_5", {"Ernie4_5ForCausalLM"}},
      FamilyConfig{"ernie4_5_moe", {"Ernie4_5_MoeForCausalLM"}},
      FamilyConfig{"exaone", {"ExaoneForCausalLM"}},
      FamilyConfig{"exaone4", {"Exaone4ForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"exaone_moe", {"ExaoneMoeForCausalLM"}},
      FamilyConfig{"falcon", {"FalconForCausalLM"}, false, {.token_classes = "classifier"}},
      FamilyConfig{"falcon_h1", {"FalconH1ForCausalLM"}},
      FamilyConfig{"falcon_mamba", {"FalconMambaForCausalLM"}},
      FamilyConfig{"flex_olmo", {"FlexOlmoForCausalLM"}},
      FamilyConfig{"gemma", {"GemmaForCausalLM"}},
      FamilyConfig{"gemma2", {"Gemma2ForCausalLM"}},
      FamilyConfig{"gemma3_text", {"Gemma3ForCausalLM"}},
      FamilyConfig{"gemma3n_text", {"Gemma3nForCausalLM"}},
      FamilyConfig{"gemma4_text", {"Gemma4ForCausalLM"}},
      FamilyConfig{"glm", {"GlmForCausalLM"}},
      FamilyConfig{"glm4", {"Glm4ForCausalLM"}},
      FamilyConfig{"glm4_moe", {"Glm4MoeForCausalLM"}},
      FamilyConfig{"glm4_moe_lite", {"Glm4MoeLiteForCausalLM"}},
      FamilyConfig{"glm_moe_dsa", {"GlmMoeDsaForCausalLM"}},
      FamilyConfig{"gpt2", {"GPT2LMHeadModel"}, false, {.token_classes = "classifier"}},
      FamilyConfig{"gpt_bigcode", {"GPTBigCodeForCausalLM"}, false, {.token_classes = "classifier"}},
      FamilyConfig{"gpt_neo", {"GPTNeoForCausalLM"}, false, {.token_classes = "classifier"}},
      FamilyConfig{"gpt_neox", {"GPTNeoXForCausalLM"}, false, {.token_classes = "classifier"}},
      FamilyConfig{"gpt_oss", {"GptOssForCausalLM"}, true},
      FamilyConfig{"gptj", {"GPTJForCausalLM"}},
      FamilyConfig{"granite", {"GraniteForCausalLM"}},
      FamilyConfig{"granitemoe", {"GraniteMoeForCausalLM"}},
      FamilyConfig{"granitemoehybrid", {"GraniteMoeHybridForCausalLM"}},
      FamilyConfig{"granitemoeshared", {"GraniteMoeSharedForCausalLM"}},
      FamilyConfig{"grok-1", {"Grok1ForCausalLM", "Grok1ModelForCausalLM"}},
      FamilyConfig{"helium", {"HeliumForCausalLM"}},
      FamilyConfig{"hunyuan_v1_dense", {"HunYuanDenseV1ForCausalLM"}},
      FamilyConfig{"hunyuan_v1_moe", {"HunYuanMoEV1ForCausalLM"}},
      FamilyConfig{"hyperclovax", {"HyperCLOVAXForCausalLM"}},
      FamilyConfig{"internlm2", {"InternLM2ForCausalLM"}},
      FamilyConfig{"internlm3", {"InternLM3ForCausalLM", "LlamaForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{
          "iquestcoder", {"IQuestCoderForCausalLM", "LlamaForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"jais2", {"Jais2ForCausalLM"}},
      FamilyConfig{"jamba", {"JambaForCausalLM"}},
      FamilyConfig{"jetmoe", {"JetMoeForCausalLM"}},
      FamilyConfig{"kimi_linear", {"KimiLinearForCausalLM"}},
      FamilyConfig{"lfm2", {"Lfm2ForCausalLM"}},
      FamilyConfig{"lfm2_moe", {"Lfm2MoeForCausalLM"}},
      FamilyConfig{"llama", {"LlamaForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"llama4_text", {"Llama4ForCausalLM"}},
      FamilyConfig{"longcat_flash", {"LongcatFlashForCausalLM"}},
      FamilyConfig{"mamba", {"MambaForCausalLM"}},
      FamilyConfig{"mamba2", {"Mamba2ForCausalLM"}},
      FamilyConfig{"mimo_v2_flash", {"MiMoV2FlashForCausalLM"}},
      FamilyConfig{"minimax", {"MiniMaxForCausalLM"}},
      FamilyConfig{"minimax_m2", {"MiniMaxM2ForCausalLM"}},
      FamilyConfig{"ministral", {"MinistralForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"ministral3", {"Ministral3ForCausalLM"}},
      FamilyConfig{"mistral", {"MistralForCausalLM"}},
      FamilyConfig{"mixtral", {"MixtralForCausalLM"}},
      FamilyConfig{"modernbert", {"ModernBertForMaskedLM"}},
      FamilyConfig{"mpt", {"MptForCausalLM"}, false, {.token_classes = "classifier"}},
      FamilyConfig{"nemotron", {"NemotronForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"nemotron_h", {"NemotronHForCausalLM"}},
      FamilyConfig{"olmo", {"OlmoForCausalLM"}},
      FamilyConfig{"olmo2", {"Olmo2ForCausalLM"}},
      FamilyConfig{"olmo3", {"Olmo3ForCausalLM"}},
      FamilyConfig{"olmoe", {"OlmoeForCausalLM"}},
      FamilyConfig{"openelm", {"OpenELMForCausalLM"}},
      FamilyConfig{"opt", {"OPTForCausalLM"}},
      FamilyConfig{"persimmon", {"PersimmonForCausalLM"}},
      FamilyConfig{"phi", {"PhiForCausalLM"}},
      FamilyConfig{"phi3", {"Phi3ForCausalLM"}},
      FamilyConfig{"phimoe", {"PhimoeForCausalLM"}},
      FamilyConfig{"qwen2", {"Qwen2ForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"qwen2_moe", {"Qwen2MoeForCausalLM"}},
      FamilyConfig{"qwen3", {"Qwen3ForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"qwen3_5_moe_text", {"Qwen3_5MoeForCausalLM"}},
      FamilyConfig{"qwen3_5_text", {"Qwen3_5ForCausalLM"}},
      FamilyConfig{"qwen3_moe", {"Qwen3MoeForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"qwen3_next", {"Qwen3NextForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"roberta", {"RobertaForMaskedLM", "RobertaForCausalLM"}},
      FamilyConfig{"rwkv", {"RwkvForCausalLM"}},
      FamilyConfig{"seed_oss", {"SeedOssForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"smollm3", {"SmolLM3ForCausalLM"}, false, {.question_stack = "transformer"}},
      FamilyConfig{"solar_open", {"SolarOpenForCausalLM"}},
      FamilyConfig{"stablelm", {"StableLmForCausalLM"}},
      FamilyConfig{"starcoder2", {"Starcoder2ForCausalLM"}},
      FamilyConfig{"vaultgemma", {"VaultGemmaForCausalLM"}},
      FamilyConfig{"xerxes", {"XerxesForCausalLM"}},
      FamilyConfig{"xlm-roberta", {"XLMRobertaForMaskedLM", "XLMRobertaForCausalLM"}},
      FamilyConfig{"xlstm", {"xLSTMForCausalLM"}},
      FamilyConfig{"zamba2", {"Zamba2ForCausalLM"}},
  };
  static std::vector<FamilyConfig> all(built.begin(), built.end());
  return all;
}

FamilyPart text_part(std::string_view model_type, std::string_view prefix) {
  return {PartRole::text, "text_config", model_type, {prefix}};
}
FamilyPart vision_part(std::string_view model_type, std::vector<std::string_view> prefixes) {
  return {PartRole::vision, "vision_config", model_type, std::move(prefixes)};
}
FamilyPart audio_part(std::string_view model_type) {
  return {PartRole::audio, "audio_config", model_type, {"audio_tower.", "embed_audio."}};
}
FamilyConfig of_parts(std::string_view model_type, std::vector<FamilyPart> parts, bool tied = false,
                      bool plain_logits = true) {
  return {.model_type = model_type,
          .architectures = {},
          .parts = std::move(parts),
          .tied_text = tied,
          .plain_logits = plain_logits};
}

// Alphabetical. Defaults are those of transformers' configuration classes.
const auto& all_families_of_parts() {
  static const std::array all = {
      of_parts("aya_vision",
               {text_part("cohere2", "language_model."),
                vision_part("siglip_vision_model", {"vision_tower.", "multi_modal_projector."})},
               true),
      of_parts("cohere2_vision",
               {text_part("cohere2", "language_model."),
                vision_part("siglip_vision_model", {"vision_tower.", "multi_modal_projector."})},
               true),
      of_parts("gemma3",
               {text_part("gemma3_text", "language_model."),
                vision_part("siglip_vision_model", {"vision_tower.", "multi_modal_projector."})},
               true),
      of_parts("gemma3n",
               {text_part("gemma3n_text", "language_model."),
                vision_part("gemma3n_vision", {"vision_tower.", "embed_vision."}), audio_part("gemma3n_audio")},
               true, false),
      of_parts("gemma4",
               {text_part("gemma4_text", "language_model."),
                vision_part("gemma4_vision", {"vision_tower.", "embed_vision."}), audio_part("gemma4_audio")},
               true, false),
      of_parts("idefics3",
               {text_part("llama", "text_model."), vision_part("idefics3_vision", {"vision_model.", "connector."})}),
      of_parts("internvl",
               {text_part("qwen2", "language_model."),
                vision_part("internvl_vision", {"vision_tower.", "multi_modal_projector."})},
               true),
      of_parts("llama4", {text_part("llama4_text", "language_model."),
                          vision_part("llama4_vision_model", {"vision_model.", "multi_modal_projector."})}),
      of_parts("llava", {text_part("llama", "language_model."),
                         vision_part("clip_vision_model", {"vision_tower.", "multi_modal_projector."})}),
      of_parts("llava_next",
               {text_part("llama", "language_model."),
                vision_part("clip_vision_model", {"vision_tower.", "multi_modal_projector.", "image_newline"})}),
      of_parts("llava_onevision",
               {text_part("qwen2", "language_model."),
                vision_part("siglip_vision_model", {"vision_tower.", "multi_modal_projector.", "image_newline"})}),
      of_parts("mistral3",
               {text_part("mistral", "language_model."),
                vision_part("pixtral", {"vision_tower.", "multi_modal_projector."})},
               true),
      of_parts("qwen3_5", {text_part("qwen3_5_text", "language_model."), vision_part("qwen3_5_vision", {"visual."})}),
      of_parts("qwen3_5_moe",
               {text_part("qwen3_5_moe_text", "language_model."), vision_part("qwen3_5_moe_vision", {"visual."})}),
      of_parts("smolvlm",
               {text_part("llama", "text_model."), vision_part("smolvlm_vision", {"vision_model.", "connector."})}),
  };
  return all;
}

}  // namespace

std::span<const FamilyConfig> family_configs() { return all_configs(); }

std::span<const FamilyConfig> families_of_parts() { return all_families_of_parts(); }

const FamilyConfig* family_of_parts(const Value& config) {
  const Value* const type = config.find("model_type");
  const auto& all = all_families_of_parts();
  const auto found = std::ranges::find(all, type ? type->as_string().value_or("") : "", &FamilyConfig::model_type);
  return found == all.end() ? nullptr : &*found;
}

const FamilyPart* part_of(const FamilyConfig& family, PartRole role) {
  const auto found = std::ranges::find(family.parts, role, &FamilyPart::role);
  return found == family.parts.end() ? nullptr : &*found;
}

std::string_view name_of(PartRole role) {
  switch (role) {
    case PartRole::text:
      return "text";
    case PartRole::vision:
      return "vision";
    case PartRole::audio:
      return "audio";
  }
  return "";
}

void add_family_config(const FamilyConfig& config) {
  if (std::ranges::find(all_configs(), config.model_type, &FamilyConfig::model_type) != all_configs().end())
    refuse("model_type", "'" + std::string(config.model_type) + "' already exists",
           "give the family a name of its own");
  all_configs().push_back(config);
}

const FamilyConfig& family_config_of(const Value& config, const Where& where) {
  // nullptr: absent or null.
  const auto find = [&](std::string_view key) {
    const Value* const value = config.find(key);
    return value && !value->is_null() ? value : nullptr;
  };
  const auto word_of = [&](const std::string& key, const Value& value) {
    const auto word = value.as_string();
    if (!word) refuse(where.below(key), to_json(value) + " is not a string");
    return *word;
  };
  std::vector<std::string> known;
  for (const FamilyConfig& family : family_configs()) known.emplace_back(family.model_type);
  const Value* const given = find("model_type");
  const std::string type = given ? word_of("model_type", *given) : "";
  if (type.empty()) refuse(where.below("model_type"), "is missing", "it names the family: " + join(known, ", "));
  const auto found = std::ranges::find(family_configs(), type, &FamilyConfig::model_type);
  if (found == family_configs().end())
    refuse(where.below("model_type"), "'" + type + "' is not built yet", did_you_mean(type, known));
  if (const Value* const architectures = find("architectures")) {
    if (!architectures->is_list()) refuse(where.below("architectures"), to_json(*architectures) + " is not a list");
    for (const Value& item : architectures->items) {
      const std::string name = word_of("architectures", item);
      if (task_of(*found, name)) continue;
      std::vector<std::string> built(found->architectures.begin(), found->architectures.end());
      for (const auto& [task, ending] : endings) built.push_back(class_stem(*found) + std::string(ending));
      refuse(where.below("architectures"), "'" + name + "' is not built yet",
             "built for '" + type + "': " + join(built, ", "));
    }
  }
  if (const quant::FileConfig codes = quant::read_file_config(config, where);
      codes.method == "mxfp4" && !found->reads_mxfp4)
    refuse(codes.where.below("quant_method"), str("'mxfp4' is not built yet for '", type, "'"),
           "load the unquantized model");
  if (const Value* const pruned = find("pruned_heads"); pruned && !(pruned->is_map() && pruned->entries.empty()))
    refuse(where.below("pruned_heads"), "pruned heads are not supported");
  return *found;
}

std::span<const std::string_view> common_keys() {
  static constexpr std::array<std::string_view, 9> keys = {"bos_token_id", "classifier_dropout", "eos_token_id",
                                                           "id2label",     "initializer_range",  "is_causal",
                                                           "num_labels",   "pad_token_id",       "tie_word_embeddings"};
  return keys;
}

std::optional<Task> task_of(const FamilyConfig& family, std::string_view architecture) {
  for (const auto& [task, ending] : endings)
    if (architecture == class_stem(family) + std::string(ending)) return task;
  const auto own = [&](std::string_view name) {
    return std::ranges::find(family.architectures, name) != family.architectures.end();
  };
  // model_type alone decides the family: for a class with another prefix (LLaMAForCausalLM in Llama's first files,
  // MPTForCausalLM) only the ending counts.
  for (const auto& [task, ending] : language_endings)
    if (architecture.ends_with(ending) &&
        (own(architecture) ||
         std::ranges::any_of(family.architectures, [&](auto name) { return name.ends_with(ending); })))
      return task;
  if (const auto task = task_of_ending(architecture); task && task != Task::causal_lm && task != Task::masked_lm)
    return task;
  if (own(architecture)) return Task::causal_lm;  // a plug-in's, with any name
  return std::nullopt;
}

std::optional<Task> task_of_ending(std::string_view architecture) {
  for (const auto& [task, ending] : language_endings)
    if (architecture.ends_with(ending)) return task;
  for (const auto& [task, ending] : endings)
    if (task != Task::base && architecture.ends_with(ending)) return task;
  return std::nullopt;
}

std::string class_stem(const FamilyConfig& family) {
  std::string_view name = family.architectures.front();
  for (const auto& [task, ending] : language_endings)
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  return std::string(name) + (family.model_type.ends_with("_text") ? "Text" : "");
}

std::string architecture_of(const FamilyConfig& family, Task task) {
  for (const std::string_view architecture : family.architectures)
    if (task_of(family, architecture) == task) return std::string(architecture);
  for (const auto& [known, ending] : endings)
    if (known == task) return class_stem(family) + std::string(ending);
  refuse("model.task", "'" + std::string(family.model_type) + "' has no head for " + std::string(name_of(task)));
}

Task task_of(const Value& config, const FamilyConfig& family) {
  const Value* const architectures = config.find("architectures");
  const bool named = architectures && architectures->is_list() && !architectures->items.empty();
  const std::string name =
      named ? architectures->items.front().as_string().value_or("") : std::string(family.architectures.front());
  return task_of(family, name).value();
}

std::string_view name_of(Task task) {
  switch (task) {
    case Task::causal_lm:
      return "causal language modelling";
    case Task::masked_lm:
      return "masked language modelling";
    case Task::base:
      return "hidden states alone";
    case Task::sequence_classification:
      return "sequence classification";
    case Task::token_classification:
      return "token classification";
    case Task::question_answering:
      return "question answering";
  }
  return "";
}

}  // namespace easydel::models
