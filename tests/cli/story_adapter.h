// A small LoRA adapter over the story model.
#pragma once

#include <string>
#include <vector>

#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::test {

// PEFT's folder. `size`: of the values, which are otherwise equal.
inline void write_story_adapter(const fs::path& folder, float size) {
  std::vector<weights::OutTensor> tensors;
  for (const char* const layer : {"q_proj", "v_proj", "o_proj"})
    for (const char* const part : {"lora_A", "lora_B"}) {
      const bool first = std::string(part) == "lora_A";
      const int64_t rows = first ? 2 : std::string(layer) == "v_proj" ? 32 : 64, columns = first ? 64 : 2;
      std::vector<float> values(size_t(rows * columns));
      for (size_t i = 0; i < values.size(); ++i) values[i] = size * float(int(i * 7 % 11) - 5) / 10;
      tensors.push_back({str("base_model.model.model.layers.2.self_attn.", layer, ".", part, ".weight"),
                         weights::DType::f32,
                         {rows, columns},
                         [values](const auto& sink) { sink(values.data(), values.size() * sizeof(float)); }});
    }
  fs::create_directories(folder);
  weights::write_safetensors(folder / "adapter_model.safetensors", tensors);
  write_file(folder / "adapter_config.json",
             R"({"peft_type": "LORA", "r": 2, "lora_alpha": 2, "target_modules": ["q_proj", "v_proj", "o_proj"],
                 "layers_to_transform": [2]})");
}

}  // namespace easydel::test
