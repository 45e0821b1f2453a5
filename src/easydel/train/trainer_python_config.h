// Keys of `trainer:` that configure EasyDeL's Python and JAX, its engine, or what is not built: accepted and
// type-checked, so that a file with them runs. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"

namespace easydel::train {

struct TrainerPythonConfig {
  bool dataloader_pin_memory = false;
  bool use_data_collator = true;
  std::optional<std::vector<std::string>> ids_to_pop_from_dataset = {};
  std::string offload_device_type = "cpu";
  int64_t offload_device_index = 0;
  bool is_fine_tuning = true;
  std::optional<std::vector<std::string>> metrics_to_show_in_rich_pbar = {};
  bool verbose = true;
  bool process_zero_is_admin = true;
  std::optional<std::string> backend = {};
  Value model_parameters = {};
  Value jax_distributed_config = {};
  Value state_apply_fn_kwarguments_to_model = {};
  std::string sparse_module_type = "bcoo";
  Value pruning_module = {};
  Value straight_through_emulator = {};
  bool merge_lora_before_tpu_preemption_save = false;
  Value generation_do_sample = {};
  Value generation_num_return_sequences = {};
  bool generation_shard_inputs = true;
  std::optional<std::string> generation_dataset_prompt_field = "prompt";
  Value generation_extra_kwargs = {};
  Value generation_config_overrides = {};
  std::optional<int64_t> generation_seed = {};
  bool generation_preview_print = false;
  bool generation_log_to_wandb = true;
  Value generation_presence_penalty = {};
  Value generation_frequency_penalty = {};
  Value generation_repetition_penalty = {};
  bool log_training_generations_to_wandb = true;
  std::optional<int64_t> esurge_max_num_seqs = {};
  std::optional<int64_t> esurge_min_input_pad = {};
  bool esurge_silent_mode = true;
  bool esurge_use_tqdm = true;
  bool esurge_runner_verbose = false;
  std::optional<int64_t> esurge_max_num_batched_tokens = {};
  std::optional<bool> esurge_enable_prefix_caching = {};
  std::optional<std::string> esurge_data_parallelism_axis = {};
  std::optional<std::vector<int64_t>> esurge_max_num_seq_buckets = {};

  static constexpr auto doc = "Keys that mean little here.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::dataloader_pin_memory>("Pin batches in memory.",
                                         no_effect("rows are tokenized once, before the first step")),
        field<&C::use_data_collator>("Use the method's collator.",
                                     no_effect("every method has one way to make batches"),
                                     alias("use_data_collactor")),
        field<&C::ids_to_pop_from_dataset>("Fields to drop.",
                                           no_effect("rows are tokenized once, before the first step")),
        field<&C::offload_device_type>("Device of the data.",
                                       no_effect("rows are tokenized once, before the first step")),
        field<&C::offload_device_index>("Index of that device.",
                                        no_effect("rows are tokenized once, before the first step")),
        field<&C::is_fine_tuning>("Stated in the model card.", no_effect("for information only")),
        field<&C::metrics_to_show_in_rich_pbar>("Metrics shown next to the bar.",
                                                no_effect("the bar shows loss, rate and speed")),
        field<&C::verbose>("Log more.", no_effect("logs follow --quiet")),
        field<&C::process_zero_is_admin>("Rank 0 writes files.", no_effect("it always does")),
        field<&C::backend>("Backend of the trainer.", no_effect("platform.backend counts")),
        field<&C::model_parameters>("Parameters for a model built by the trainer.",
                                    not_built("a model built by the trainer")),
        field<&C::jax_distributed_config>("Settings by which JAX finds its hosts.",
                                          no_effect("ranks come from --nproc, torchrun, Slurm or MPI")),
        field<&C::state_apply_fn_kwarguments_to_model>("Arguments of the forward pass.",
                                                       not_built("more arguments of the forward pass")),
        field<&C::sparse_module_type>("Kind of sparse weights.", no_effect("sparse weights are not built yet")),
        field<&C::pruning_module>("An object: only in Python.", not_built("pruning while training")),
        field<&C::straight_through_emulator>("A function: only in Python.",
                                             not_built("another estimator than straight-through")),
        field<&C::merge_lora_before_tpu_preemption_save>("Merge adapters when the run is asked to stop.",
                                                         no_effect("only the end of a run merges adapters")),
        field<&C::generation_do_sample>("Whether to sample.", no_effect("generation_interval is not built yet")),
        field<&C::generation_num_return_sequences>("Completions.", no_effect("generation_interval is not built yet")),
        field<&C::generation_shard_inputs>("Shard the prompts.", no_effect("generation_interval is not built yet")),
        field<&C::generation_dataset_prompt_field>("Field with the prompt.",
                                                   no_effect("generation_interval is not built yet")),
        field<&C::generation_extra_kwargs>("More parameters.", no_effect("generation_interval is not built yet")),
        field<&C::generation_config_overrides>("More parameters.", no_effect("generation_interval is not built yet")),
        field<&C::generation_seed>("Seed.", no_effect("generation_interval is not built yet")),
        field<&C::generation_preview_print>("Print them.", no_effect("generation_interval is not built yet")),
        field<&C::generation_log_to_wandb>("Report them.", no_effect("generation_interval is not built yet")),
        field<&C::generation_presence_penalty>("Penalty.", no_effect("generation_interval is not built yet")),
        field<&C::generation_frequency_penalty>("Penalty.", no_effect("generation_interval is not built yet")),
        field<&C::generation_repetition_penalty>("Penalty.", no_effect("generation_interval is not built yet")),
        field<&C::log_training_generations_to_wandb>("Report completions.",
                                                     no_effect("nothing is reported to Weights & Biases")),
        field<&C::esurge_max_num_seqs>("Sequences decoded together.", at_least(1),
                                       no_effect("this method does not generate")),
        field<&C::esurge_min_input_pad>("Fewest sequences.", no_effect("this method does not generate")),
        field<&C::esurge_silent_mode>("Log nothing.", no_effect("this method does not generate")),
        field<&C::esurge_use_tqdm>("Show progress.", no_effect("this method does not generate")),
        field<&C::esurge_runner_verbose>("Log each step.", no_effect("this method does not generate")),
        field<&C::esurge_max_num_batched_tokens>("Tokens of a step.", at_least(1),
                                                 no_effect("this method does not generate")),
        field<&C::esurge_enable_prefix_caching>("Reuse pages.", no_effect("this method does not generate")),
        field<&C::esurge_data_parallelism_axis>("Axis over which requests are sharded.",
                                                no_effect("this method does not generate")),
        field<&C::esurge_max_num_seq_buckets>("Sizes of compiled steps.", no_effect("this method does not generate")),
    };
  }
};

}  // namespace easydel::train
