// Which model: the sections `model`, `reference_model`, `teacher_model`, `reward_model`, and how it is loaded.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <tuple>

#include "easydel/config/fields.h"

namespace easydel::elarge {

enum class Task {
  causal_lm,
  vision_lm,
  diffusion_lm,
  image_text_to_text,
  base_module,
  vision_module,
  seq2seq,
  speech_seq2seq,
  zero_shot_image_classification,
  sequence_classification,
  audio_classification,
  image_classification,
  embedding,
  any_to_any,
  auto_bind
};
constexpr auto choices(Task) {
  using enum Task;
  using config::Choice;
  return std::array{
      Choice{auto_bind, "auto-bind"}.also("auto"),
      Choice{causal_lm, "causal-language-model"}.also("causal-lm").also("lm"),
      Choice{vision_lm, "vision-language-model"}.also("vision-lm").not_built(),
      Choice{diffusion_lm, "diffusion-language-model"}.also("diffusion-lm").not_built(),
      Choice{image_text_to_text, "image-text-to-text"}.not_built(),
      Choice{base_module, "base-module"}.also("base"),
      Choice{vision_module, "vision-module"}.not_built(),
      Choice{seq2seq, "sequence-to-sequence"}.also("seq2seq").not_built(),
      Choice{speech_seq2seq, "speech-sequence-to-sequence"}.also("speech-seq2seq").not_built(),
      Choice{zero_shot_image_classification, "zero-shot-image-classification"}.not_built(),
      Choice{sequence_classification, "sequence-classification"},
      Choice{audio_classification, "audio-classification"}.not_built(),
      Choice{image_classification, "image-classification"}.not_built(),
      Choice{embedding, "embedding"},
      Choice{any_to_any, "any-to-any"}.not_built(),
  };
}

struct ModelConfig {
  std::string name_or_path;
  std::optional<std::string> tokenizer;
  std::string revision = "main";
  Task task = Task::auto_bind;
  std::map<std::string, Value> extra_kwargs;

  static constexpr auto doc = "A Hugging Face model folder.";
  static constexpr auto fields() {
    using namespace config;
    return std::tuple{
        field<&ModelConfig::name_or_path>(
            "Folder with config.json and *.safetensors, or a name of the hub, owner/name, which is fetched into the "
            "Hugging Face cache. With config.json alone the model starts from random weights.",
            required()),
        field<&ModelConfig::tokenizer>("Folder of the tokenizer; null: the model's own."),
        field<&ModelConfig::revision>("Branch, tag or commit of a name of the hub."),
        field<&ModelConfig::task>("What the model is for; auto-bind: what its config.json says."),
        field<&ModelConfig::extra_kwargs>("More arguments for loading; any keys."),
    };
  }
  void settle(config::Keys& keys) {
    if (keys.given("name_or_path") && name_or_path.empty())
      keys.refuse("name_or_path", "is empty", "give a model folder");
    for (const auto& [name, value] : extra_kwargs)
      keys.no_effect("extra_kwargs." + name, "loading asks for no such argument");
  }
};

enum class DType { automatic, bf16, fp16, fp32, fp64, fp8, mxfp4, mxfp8, nvfp8 };
constexpr auto choices(DType) {
  using enum DType;
  using config::Choice;
  return std::array{
      Choice{automatic, "auto"},
      Choice{bf16, "bf16"}.also("bfloat16").also("torch.bfloat16"),
      Choice{fp16, "fp16"}.also("float16").also("f16").also("half").also("torch.float16"),
      Choice{fp32, "fp32"}.also("float32").also("f32").also("float").also("torch.float32"),
      Choice{fp64, "fp64"}.also("float64").also("f64").not_built(),
      Choice{fp8, "fp8"}.also("float8").not_built(),
      Choice{mxfp4, "mxfp4"}.not_built(),
      Choice{mxfp8, "mxfp8"}.not_built(),
      Choice{nvfp8, "nvfp8"}.not_built(),
  };
}
std::string_view name_of(DType dtype);

enum class Device { automatic, cpu, gpu };
constexpr auto choices(Device) {
  using config::Choice;
  return std::array{Choice{Device::automatic, "auto"}, Choice{Device::cpu, "cpu"},
                    Choice{Device::gpu, "gpu"}.also("cuda")};
}

enum class Precision { standard, high, highest };
constexpr auto choices(Precision) {
  using config::Choice;
  return std::array{Choice{Precision::standard, "default"}.also("fastest"),
                    Choice{Precision::high, "high"}.also("bfloat16_3x").also("tensorfloat32"),
                    Choice{Precision::highest, "highest"}.also("float32")};
}

struct LoaderConfig {
  Device device = Device::automatic;
  DType dtype = DType::bf16;
  DType param_dtype = DType::bf16;
  std::optional<Precision> precision;
  bool verbose = true;
  std::optional<bool> from_torch;
  bool trust_remote_code = false;

  static constexpr auto doc = "How the model is loaded.";
  static constexpr auto fields() {
    using namespace config;
    return std::tuple{
        field<&LoaderConfig::device>("Where the model lives; auto: the GPU if there is one."),
        field<&LoaderConfig::dtype>("Number type of the computation; auto: the file's."),
        field<&LoaderConfig::param_dtype>("Number type in which parameters are kept; auto: the file's."),
        field<&LoaderConfig::precision>(
            "Precision of products; null and default: as the dtype, high and highest: fp32 products in fp32.",
            no_effect("products of fp32 numbers are always computed in fp32")),
        field<&LoaderConfig::verbose>("Say what is loaded."),
        field<&LoaderConfig::from_torch>("Convert a PyTorch checkpoint.", no_effect("files are read as they are")),
        field<&LoaderConfig::trust_remote_code>("Run the model folder's own code.",
                                                no_effect("no folder's code is run")),
    };
  }
};

}  // namespace easydel::elarge
