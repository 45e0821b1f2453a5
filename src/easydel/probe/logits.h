// `probe logits`: what a model computes for given inputs, in the form that anyone can compare with another
// implementation. The forms of the files stand in data/hf_goldens/README.md of the project's references.
#pragma once

#include <filesystem>
#include <string>

#include "easydel/models/model.h"

namespace easydel::probe {

struct LogitsOptions {
  std::string dtype = "fp32";
  std::string attention = "auto";
  std::string moe_method = "fused_moe";
  std::string device = "auto";  // cpu, gpu
  std::filesystem::path
      trace;  // a file for named intermediate tensors, or a folder to put trace.safetensors into; empty: none
  bool gradients = true;  // of the loss, where there are labels; none of a quantized model
  std::optional<nn::Quantization> quantization = {};
};

// models::Inputs (safetensors): input_ids int64 [rows, T]; attention_mask, token_type_ids of that shape; labels as the
// task has them: [rows, T], for a class of the whole row [rows] or [rows, classes]; of answers start_positions,
// end_positions [rows]; prompt_ids, prompt_mask [prompts, P]; max_new_tokens int64 [1]. Positions are 0, 1, 2, ... in
// each row, padding counted; a padded position is seen by nobody. Output: logits [rows, T, vocabulary or classes] or
// [rows, classes] (with sparse_prediction those of labelled tokens alone); of answers start_logits and end_logits
// [rows, T] too; of a bare stack embeddings [rows, size], and pooler_output where it has that layer; last_hidden_state
// (what enters the output layer), loss [1], grad_norm_total [1], grad_norm.NAME [1] for each tensor of the checkpoint,
// generated [prompts, max_new_tokens] (greedy, padding removed, the end token ignored).
void logits(const std::filesystem::path& folder, const std::filesystem::path& inputs,
            const std::filesystem::path& output, const LogitsOptions& options = {});

}  // namespace easydel::probe
