// `probe logits`: what a model computes for given inputs, in a format that can be compared with other implementations.
// data/hf_goldens/README.md of the project's references describes the files.
#pragma once

#include <filesystem>
#include <string>

#include "easydel/models/model.h"

namespace easydel::probe {

struct LogitsOptions {
  models::DTypeSetting dtype = models::DTypeSetting::fp32;
  ops::AttentionMechanism attention = ops::AttentionMechanism::automatic;
  ops::MoeMethod moe_method = ops::MoeMethod::fused_moe;
  models::DeviceSetting device = models::DeviceSetting::automatic;
  std::filesystem::path
      trace;  // a file for named intermediate tensors, or a folder to put trace.safetensors into; empty: none
  bool gradients = true;  // of the loss, if there are labels; not for a quantized model
  std::optional<nn::Quantization> quantization = {};
  std::vector<std::filesystem::path> adapters = {};  // folders, all over the model's weights at once
  bool merged = false;                               // into the weights, before anything is computed
  nn::CacheSetting cache_format = {};                // while generating
};

// models::Inputs (safetensors): input_ids int64 [rows, T]; attention_mask, token_type_ids of that shape; labels as the
// task requires: [rows, T], or for classes of whole rows [rows] or [rows, classes]; for answers start_positions,
// end_positions [rows]; prompt_ids, prompt_mask [prompts, P]; max_new_tokens int64 [1]. Positions are 0, 1, 2, ... in
// each row, padding included; padding is never attended. Output: logits [rows, T, vocabulary or classes] or [rows,
// classes] (with sparse_prediction only those of labelled tokens); for answers start_logits and end_logits [rows, T];
// for a model without a head embeddings [rows, size], and pooler_output if it has that layer; last_hidden_state (the
// input of the output layer), loss [1], grad_norm_total [1], grad_norm.NAME [1] for each tensor of the checkpoint,
// generated [prompts, max_new_tokens] (greedy, without padding, ignoring the end token). UserError if the file has an
// input that the model cannot use.
void logits(const std::filesystem::path& folder, const std::filesystem::path& inputs,
            const std::filesystem::path& output, const LogitsOptions& options = {});

}  // namespace easydel::probe
