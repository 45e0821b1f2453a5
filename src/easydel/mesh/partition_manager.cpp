// The words for dimensions, and how they are resolved to a layout.
#include "easydel/mesh/partition_manager.h"

#include <algorithm>
#include <mutex>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::mesh {
namespace {

struct Token {
  std::string word, field;
  std::string generation_field = {};  // replaces `field` in generation modes, if it names axes
};

// __KV_HEAD_DIM__ follows the decode field in every mode, as the documented version has it.
std::vector<Token>& tokens() {
  static std::vector<Token> all = {
      {"__BATCH__", "batch_axis", "decode_batch_axis"},
      {"__LENGTH__", "sequence_axis"},
      {"__KV_LENGTH__", "key_sequence_axis", "decode_key_sequence_axis"},
      {"__QUERY_LENGTH__", "query_sequence_axis", "decode_query_sequence_axis"},
      {"__EMBED__", "hidden_state_axis"},
      {"__HEAD__", "head_axis", "decode_head_axis"},
      {"__KV_HEAD__", "kv_head_axis", "decode_kv_head_axis"},
      {"__MLP_INTERMEDIATE__", "mlp_intermediate_axis"},
      {"__VOCAB__", "vocab_axis"},
      {"__EXPERT__", "expert_axis"},
      {"__EXPERT_GATE__", "expert_gate_axis"},
      {"__HEAD_DIM__", "attention_dim_axis", "decode_attention_dim_axis"},
      {"__KV_HEAD_DIM__", "decode_attention_kv_dim_axis"},
      {"__BIAS_HEAD_SEQ__", "bias_head_sequence_axis"},
      {"__BIAS_KV_SEQ__", "bias_key_sequence_axis"},
      {"__DATA_PARALLEL__", "data_parallel_axis"},
      {"__FULLY_SHARDED_DATA_PARALLEL__", "fully_sharded_data_parallel_axis"},
      {"__TENSOR_PARALLEL__", "tensor_parallel_axis"},
      {"__SEQUENCE_PARALLEL__", "sequence_parallel_axis"},
      {"__EXPERT_PARALLEL__", "expert_parallel_axis"},
  };
  return all;
}

std::mutex& tokens_mutex() {
  static std::mutex mutex;
  return mutex;
}

bool is_empty(const std::string& word) { return word.empty() || word == "_"; }

}  // namespace

std::vector<std::string> semantic_tokens() {
  const std::lock_guard lock(tokens_mutex());
  std::vector<std::string> out;
  for (const Token& token : tokens()) out.push_back(token.word);
  return out;
}

void register_token(const std::string& token, const std::string& field,
                    const std::optional<std::string>& generation_field, bool replace) {
  const PartitionAxis known;
  for (const std::string& name : {field, generation_field.value_or(field)})
    if (!known.find(name))
      refuse("register_token", "PartitionAxis has no field '" + name + "'", "see PartitionAxis::fields()");
  if (is_empty(token)) refuse("register_token", "'" + token + "' means an uncut dimension", "choose another word");
  const std::lock_guard lock(tokens_mutex());
  const auto found = std::ranges::find(tokens(), token, &Token::word);
  if (found == tokens().end()) {
    tokens().push_back({token, field, generation_field.value_or("")});
  } else if (replace) {
    *found = {token, field, generation_field.value_or("")};
  } else {
    refuse("register_token", "'" + token + "' is known already", "pass replace to give it another meaning");
  }
}

Axes PartitionManager::axes_of(const std::string& word, bool generation) const {
  Token token;
  {
    const std::lock_guard lock(tokens_mutex());
    const auto found = std::ranges::find(tokens(), word, &Token::word);
    if (found != tokens().end()) token = *found;
  }
  if (token.word.empty())
    refuse("partition", "Unknown semantic axis name: '" + word + "'", did_you_mean(word, semantic_tokens()));
  if (generation && !token.generation_field.empty()) {
    const AxisField* const twin = axis_.find(token.generation_field);
    if (twin->axes && !twin->axes->empty()) return *twin->axes;
  }
  return axis_.find(token.field)->axes.value_or(Axes{});
}

PartitionSpec PartitionManager::resolve(const SemanticAxes& axes, const Mode& mode,
                                        const std::optional<std::vector<int64_t>>& shape) const {
  bool generation = false;
  if (const int64_t* const dimension = std::get_if<int64_t>(&mode)) {
    if (!shape)
      refuse("partition", "when using dynamic mode detection shape should be provided",
             "give the shape, or a mode such as __train__");
    const auto dimensions = int64_t(shape->size());
    const int64_t at = *dimension < 0 ? *dimension + dimensions : *dimension;
    if (at < 0 || at >= dimensions)
      refuse("partition", str("the mode is dimension ", *dimension, " of a shape with ", dimensions),
             "name a dimension that is there");
    generation = (*shape)[at] == 1;
  } else {
    const std::string& word = std::get<std::string>(mode);
    generation = word == decode_mode || word == insert_mode;
  }
  PartitionSpec spec;
  for (const std::vector<std::string>& words : axes) {
    Axes& cut = spec.emplace_back();
    for (const std::string& word : words) {
      if (is_empty(word)) continue;
      const Axes part = axes_of(word, generation);
      cut.insert(cut.end(), part.begin(), part.end());
    }
  }
  return spec;
}

const std::vector<DynamicShardingAxes>& named_shardings() {
  static const std::vector<DynamicShardingAxes> all = [] {
    const std::string dp = "__DATA_PARALLEL__", fsdp = "__FULLY_SHARDED_DATA_PARALLEL__", tp = "__TENSOR_PARALLEL__",
                      sp = "__SEQUENCE_PARALLEL__", ep = "__EXPERT_PARALLEL__";
    const std::vector<std::string> sharded = {fsdp, sp}, unified = {fsdp, sp, ep}, whole = {};
    const std::string train(train_mode);
    const int64_t by_length = 1;  // dimension 1 is the sequence
    return std::vector<DynamicShardingAxes>{
        {"HiddenStateSharding", {{"__BATCH__"}, {"__QUERY_LENGTH__"}, {"__EMBED__"}}, by_length},
        {"AttnQSharding", {{"__BATCH__"}, {"__QUERY_LENGTH__"}, {"__HEAD__"}, {"__HEAD_DIM__"}}, by_length},
        {"AttnKVSharding", {{"__BATCH__"}, {"__KV_LENGTH__"}, {"__KV_HEAD__"}, {"__KV_HEAD_DIM__"}}, by_length},
        {"RowWise", {{tp}, sharded}, train},
        {"ColumnWise", {sharded, {tp}}, train},
        {"SRowWise", {{tp}}, train},
        {"SColumnWise", {sharded}, train},
        {"Replicated", {whole}, train},
        {"ExpertColumnWise", {{ep}, {fsdp}, {tp}}, train},
        {"ExpertRowWise", {{ep}, {tp}, {fsdp}}, train},
        {"ExpertColumnWiseAlt", {{ep}, sharded, {tp}}, train},
        {"ExpertRowWiseAlt", {{ep}, {tp}, sharded}, train},
        {"ExpertActivations", {{dp}, {sp}, {ep}, {tp}}, train},
        {"ExpertActivationsAlt", {{dp}, {sp}, {tp, fsdp}}, train},
        {"ExpertTensorParallel", {{tp}, whole, whole}, train},
        {"UnifiedExpertColumnWise", {unified, whole, {tp}}, train},
        {"UnifiedExpertRowWise", {unified, {tp}, whole}, train},
    };
  }();
  return all;
}

const DynamicShardingAxes& named_sharding(std::string_view name) {
  const auto found = std::ranges::find(named_shardings(), name, &DynamicShardingAxes::name);
  if (found != named_shardings().end()) return *found;
  std::vector<std::string> known;
  for (const auto& one : named_shardings()) known.emplace_back(one.name);
  refuse("partition", "no layout is called '" + std::string(name) + "'", did_you_mean(name, known));
}

PartitionSpec corrected_spec(const PartitionSpec& spec, const std::vector<int64_t>& shape, const Mesh& mesh) {
  PartitionSpec out(shape.size());
  bool any = false;
  for (size_t i = 0; i < std::min(spec.size(), shape.size()); ++i) {
    const bool known = std::ranges::all_of(spec[i], [&](const std::string& axis) { return mesh.has(axis); });
    if (!known || shape[i] % mesh.size(spec[i]) != 0) continue;
    out[i] = spec[i];
    any |= !spec[i].empty();
  }
  return any ? out : PartitionSpec{};
}

Value write_spec(const PartitionSpec& spec) {
  Value list = Value::list();
  for (const Axes& axes : spec) list.items.push_back(config::Codec<AxisField>::write(AxisField(axes)));
  Value out = Value::map();
  out.set("P", std::move(list));
  return out;
}

PartitionSpec read_spec(const Value& value, const std::string& where) {
  const Value* const list = value.is_map() ? value.find("P") : &value;
  if (!list || !list->is_list())
    refuse(where, config::shown(value) + " is not a partition spec", "give a list as [fsdp, [tp, sp], null]");
  PartitionSpec spec;
  for (const Value& item : list->items) {
    Axes& axes = spec.emplace_back();
    if (item.is_null()) continue;
    for (const Value& axis : item.is_list() ? item.items : std::vector<Value>{item}) {
      const auto name = axis.as_string();
      if (!name)
        refuse(where, config::shown(axis) + " is not an axis of a mesh",
               "write names as fsdp, lists as [fsdp, sp], or null");
      axes.push_back(*name);
    }
  }
  return spec;
}

}  // namespace easydel::mesh
