// The adapter of a run: the section `lora`, and model.name_or_path where it names an adapter. A face: no torch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "easydel/elarge/elarge.h"

namespace easydel::elarge {

struct RunAdapter {
  LoraConfig config;
  std::filesystem::path folder;     // of its values; empty: it starts from initial values
  std::string where = "lora";       // how errors name it
  std::vector<int64_t> added = {};  // ids of lora.added_tokens
};

// Nothing: the run has no adapter. A section `lora` without a folder is for training alone. If the weights are codes,
// training without the section has an adapter with its defaults. UserError: the folder cannot be read, or the section
// contradicts it.
std::optional<RunAdapter> adapter_of(const Config& config, bool training);

// What a run says that trains for codes (trainer.quantization_mode) and has an adapter.
[[noreturn]] void refuse_codes_beside_adapter();

// lora.added_tokens of a run that trains them.
std::vector<std::string> added_tokens(const Config& config, bool training);

struct NamedAdapter {
  std::string name;
  std::filesystem::path folder;  // empty: a sum
  std::optional<models::AdapterSum::Kind> sum = {};
  std::vector<models::AdapterSum::Share> shares = {};
};
// The section `adapters`, sums after the adapters that they add up. UserError: a folder is not there, or is not an
// adapter.
std::vector<NamedAdapter> named_adapters(const Config& config);

}  // namespace easydel::elarge
