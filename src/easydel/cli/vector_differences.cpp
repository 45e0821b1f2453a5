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
  };
  return differences;
}

}  // namespace easydel::cli
