// Where recorded cases are answered in another way on purpose. docs/differences.md lists the same patterns; a test
// compares the two, and another asks that each of them is met.
#include "easydel/cli/vectors.h"

namespace easydel::cli {

const std::vector<VectorDifference>& vector_differences() {
  static const std::vector<VectorDifference> differences = {
      {"create_mesh", "", R"(n\d+_(4[3-9]|50))", "an axis name twice is an error"},
      {"create_mesh", "0.3.0", R"(n1_\d+)", "sizes that do not fit one rank are an error, as in 0.2.0.1; 0.3.0 takes 1 for them"},
      {"create_mesh", "0.3.0", R"(n\d+_4[0-9])", "sizes are whole numbers, as in 0.2.0.1"},
      {"create_mesh", "0.3.0", R"(n\d+_(4[6-9]|5[0-9]|6[0-9]))", "sharding_dcn_axis_dims multiplies and must fit the hosts, as in 0.2.0.1"},
      {"expert_mesh", "0.3.0", R"(e1_\d+)", "sizes that do not fit one rank are an error, as in 0.2.0.1; 0.3.0 takes 1 for them"},
      {"expert_mesh", "0.3.0", R"(e\d+_alias_.*)", "an axis in two roles is counted in each, as in 0.2.0.1"},
      {"partition_resolve", "0.2.0.1", R"(resm_.*_MODE_(DECODE|INSERT)_(5|9))", "several words for one dimension work in every mode; 0.2.0.1 fails while generating"},
      {"partition_resolve", "0.3.0", R"(res_.*_KV_HEAD_DIM|resm_.*_1)", "__KV_HEAD_DIM__ follows decode_attention_kv_dim_axis in every mode, as in 0.2.0.1"},
      {"attn_sharding_rules", "", R"(ops_.*_thd_.*)", "the layout thd is built here"},
      {"attn_sharding_rules", "0.3.0", R"(ops_(decode_custom|dims)_.*)", "__KV_HEAD_DIM__ follows decode_attention_kv_dim_axis in every mode, as in 0.2.0.1"},
      {"elarge_scalars", "", R"(dtype_(f16|fp8_e5m2|e4m3||None|torch\.float16|fp4|nvfp8|bogus))", "a number type has one meaning wherever it stands, and an unknown word is an error"},
      {"elarge_scalars", "", R"(prec_(|bogus|tensorfloat32))", "an unknown precision is an error; the words of JAX are known"},
      {"elarge_scalars", "", R"(task_(base-module|vision-module|speech-sequence-to-sequence|audio-classification|image-classification|embedding|any.to.any)_\d+)", "the documents' long names of tasks are known"},
      {"elarge_normalize", "", R"(wrap_(plus_top|null))", "keys beside a wrapper are an error; an empty wrapper is none"},
      {"elarge_normalize", "", R"((sh|sh_dims|ld_section|bc|es|mx)_null)", "an empty section or key keeps its defaults"},
      {"elarge_normalize", "", R"(model_empty_name|sh_(two_auto|unknown)|ld_bogus|bc_ops|es_(strs2?|zero|unknown|truncate_bogus)|mx_(known|notype|text)_nofiles|reference_str|task_bogus|ev_all)", "keys, types and words are checked by validate()"},
      {"elarge_normalize", "", R"(tr_(bogus|unknown|seqlen_both|seqlen_same|loss_bad|opt_bad|time_bad|gas0|type_int))", "keys, types and words are checked by validate()"},
      {"elarge_derived", "", R"(guide_(01|05|08|15)|tok|extra_dup|q_(doc|kv_doc|model_gs|mxfp4|bad)|mx_visual_doc)", "the guide's keys are accepted: extra_kwargs over the loader's, quantization_method, image_field"},
      {"elarge_derived", "0.2.0.1", R"(q_model_dtype)", "quantization.model has no simulate, as in 0.3.0"},
      {"elarge_derived", "0.3.0", R"(q_model_dtype)", "quantization.model takes block_size, as in 0.2.0.1"},
      {"elarge_derived", "", R"((sh|sh_dims|ld_section|bc|es|mx|mx_informs|teacher)_null)", "an empty section or key keeps its defaults"},
      {"elarge_derived", "", R"(ld_bogus)", "unknown words are errors"},
      {"elarge_trainer", "", R"(guide_12|tr_dpo)", "a DPO prompt has no length of its own unless it is given, as TRL has it"},
      {"elarge_trainer", "", R"(tr_(bogus|unknown|null|seqlen_both|seqlen_same|opt_bad|time_bad|gas0|lr_str))", "keys, types and words are checked; 2e-5 is a number"},
      {"elarge_runner", "", R"(model_empty_name|sh_(two_auto|unknown)|wrap_plus_top|ld_bogus|bc_ops|es_(strs2?|zero|unknown|truncate_bogus)|mx_(known|notype|text)_nofiles|reference_str|task_bogus|ev_all)", "all keys, types and words of a run are checked before its first action"},
      {"elarge_runner", "", R"(tr_(bogus|unknown|seqlen_both|seqlen_same|loss_bad|opt_bad|time_bad|gas0|type_int))", "all keys, types and words of a run are checked before its first action"},
      {"elarge_runner", "", R"((sh_dims|bc|es)_null)", "an empty section or key keeps its defaults"},
      {"elarge_runner", "", R"(act_(62|68|74|76|77|79|89))", "parameters are checked by their types: a number in quotes is a text, a bare number is one where a text is meant"},
      {"elarge_cli", "", R"(cli_(6|12|13|14))", "flags take no value, and one document is run"},
      {"model_partition_specs", "", "gpt2.*", "kernels of gpt2 are [in, out] as all others; there they are turned once too often"},
      {"model_partition_specs", "", "falcon", "multi_query has one head of keys and values, as in transformers"},
      {"model_partition_specs", "", "glm4?", "the output projection has no bias, as in transformers"},
      {"model_partition_specs", "", "olmo2", "the norms of queries and keys have their own sizes; there they are the other's"},
      {"model_partition_specs", "", "seed_oss_nobias", "attention_bias: false is obeyed"},
      {"model_partition_specs", "", "deepseek_v2", "the router's kernel is [in, out], and shared experts are cut, as in deepseek_v3"},
      {"model_param_mapping", "", "gpt_oss.*", "the biases of gate and up are halves of one tensor; there none was found equal"},
      {"model_param_mapping", "", "gpt2.*", "kernels of gpt2 are [in, out] as all others; there they are turned once too often"},
      {"model_param_mapping", "", "mixtral.*", "the router's kernel is one tensor of the file; there none was found equal"},
      {"rope", "", R"(.*\.apply\.[23]\.tab)", "a position past the table is an error; there it has the last row"},
      {"rope", "", R"(linear.*\.inv_freq)", "inverse frequencies are transformers': divided by the factor, which must be given"},
      {"rope", "0.3.0", R"(linear_scaling_factor\..*)", "scaling_factor is another name of factor, as in 0.2.0.1"},
      {"rope", "", R"(yarn_attention_factor\..*)", "attention_factor scales cos and sin, as in transformers"},
      {"rope", "", R"(yarn_mscale\.apply\..*notab)", "mscale counts with and without a table, as in transformers"},
      {"rope", "", R"(yarn_truncate_false\..*)", "truncate counts, as in transformers"},
      {"rope", "0.3.0", R"(yarn_noorig\.inv_freq)", "original_max_position_embeddings must be given, as in 0.2.0.1"},
      {"rope", "", R"(deepseek_yarn2?\.apply\..*gptj.*)", "neighbours as pairs work with every type"},
      {"rope", "", R"((mrope|longrope).*\.apply\..*gptj.*)", "neighbours as pairs work with every type; there they are passed over"},
      {"rope", "", R"(llama3.*\.(table|apply\..*))", "the table has all positions of the model; there it ends at the original ones"},
      {"rope", "", R"(longrope_partial\..*)", "longrope may turn a part of a head, as in transformers (Phi-4-mini)"},
      {"rope", "", R"(su\..*)", "'su' is longrope's name in the first files of Phi-3"},
      {"rope", "", R"(mrope\.inv_freq)", "type mrope has the usual inverse frequencies, as in transformers"},
      {"rope", "", R"(mrope.*\.p3n?)", "the two halves of a pair turn by the same position, as in transformers"},
      {"rope", "", R"(proportional\..*)", "transformers has type proportional"},
  };
  return differences;
}

}  // namespace easydel::cli
