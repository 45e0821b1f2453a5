// Which model: the sections `model`, `reference_model`, `teacher_model`, `reward_model`, and how it is loaded.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "easydel/config/fields.h"
#include "easydel/models/load_config.h"
#include "easydel/models/task_config.h"

namespace easydel::elarge {

using models::DeviceSetting;
using models::DTypeSetting;
using models::TaskType;

struct ModelConfig {
  std::string name_or_path;
  std::optional<std::string> tokenizer;
  std::optional<std::string> chat_template;
  std::string revision = "main";
  TaskType task = TaskType::auto_bind;
  std::map<std::string, Value> extra_kwargs;

  static constexpr auto doc = "A Hugging Face model.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::name_or_path>("Model folder with config.json and *.safetensors, a .gguf file, or a name on "
                                "the Hugging Face Hub (owner/name), which is downloaded into the Hugging "
                                "Face cache. A folder without weights starts from random ones.",
                                required()),
        field<&C::tokenizer>("Folder or Hub name of the tokenizer; null: the model's own."),
        field<&C::chat_template>(
            "Chat template instead of the tokenizer's: a Jinja file, or the template itself. It is "
            "saved with the model."),
        field<&C::revision>("Branch, tag or commit on the Hub. Give a commit to pin the model."),
        field<&C::task>("What the model is for; auto-bind: what its config.json says."),
        field<&C::extra_kwargs>("Additional arguments for loading; any keys."),
    };
  }
  void settle(config::Keys& keys) {
    if (keys.given("name_or_path") && name_or_path.empty())
      keys.refuse("name_or_path", "is empty", "give a model folder");
    for (const auto& [name, value] : extra_kwargs)
      keys.no_effect("extra_kwargs." + name, "loading does not take this argument");
  }
  bool chat_template_is_file() const {
    return chat_template && chat_template->find_first_of("{\n") == std::string::npos;
  }
};

// The source of model.chat_template; nothing: it is not given. UserError for a file that cannot be read, or a template
// that cannot be parsed.
std::optional<std::string> read_chat_template(const ModelConfig& model, const std::string& section);

enum class Precision { standard, high, highest };
constexpr auto choices(Precision) {
  using config::Choice;
  return std::array{Choice{Precision::standard, "default"}.also("fastest"),
                    Choice{Precision::high, "high"}.also("bfloat16_3x").also("tensorfloat32"),
                    Choice{Precision::highest, "highest"}.also("float32")};
}

struct LoaderConfig {
  DeviceSetting device = DeviceSetting::automatic;
  DTypeSetting dtype = DTypeSetting::bf16;
  DTypeSetting param_dtype = DTypeSetting::bf16;
  std::optional<Precision> precision;
  bool verbose = true;
  std::optional<bool> from_torch;
  bool trust_remote_code = false;

  static constexpr auto doc = "How the model is loaded.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::device>("Where the model lives; auto: the GPU if there is one."),
        field<&C::dtype>("Dtype of the computation; auto: the checkpoint's. fp32 is more precise than bf16, "
                         "and slower where the machine computes bf16 in hardware."),
        field<&C::param_dtype>("Dtype in which the parameters are stored; auto: the checkpoint's. fp32 "
                               "takes twice the memory of bf16 and trains more precisely."),
        field<&C::precision>("Precision of matrix products. null and default follow dtype; high and highest "
                             "compute fp32 products in fp32.",
                             no_effect("fp32 products are always computed in fp32")),
        field<&C::verbose>("Log what is loaded."),
        field<&C::from_torch>("Convert a PyTorch checkpoint.", no_effect("PyTorch checkpoints are read directly")),
        field<&C::trust_remote_code>("Run code from the model folder.",
                                     no_effect("code from model folders is never run")),
    };
  }
};

}  // namespace easydel::elarge
