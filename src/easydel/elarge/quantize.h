// A model's folder written in codes, by rounding to nearest, tensor by tensor. A face: no torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace easydel::elarge {

struct QuantizeRequest {
  std::filesystem::path model, output;
  std::string to = "nf4";      // a word of quant/file_codes.h
  std::string pattern = {};    // must be found in a layer's path; empty: every linear layer but the output's
  std::string where = "--to";  // how errors name `to`
  std::string pattern_where = "--pattern";
  uint64_t max_shard_bytes = uint64_t(5) << 30;
};

// Writes the weights, config.json, the tokenizer and generation_config.json into `output`, which must be empty or not
// there, and says what it did: "30 weights in nf4: ...". Not more than one weight in fp32 and its codes are in memory.
// UserError: the model is in codes already, its family is not known, no layer is meant, or a value is not finite;
// `output` is then as it was.
std::string quantize_model(const QuantizeRequest& request);

}  // namespace easydel::elarge
