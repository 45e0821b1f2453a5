// The recorded trainers that can be replayed: how the arguments of each become a method's keys, and its lines examples.
// A file replay_<group>_core.cpp and its line in replay_methods_core.cpp add one.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/config/codec.h"
#include "easydel/data/example.h"
#include "easydel/probe/replay_arguments.h"
#include "easydel/probe/replay_case.h"

namespace easydel::probe {

struct ReplayMethod {
  std::string_view trainer;  // TRL's class
  // Sets the method and its keys in the case, from the recorded arguments. `document`: the whole case.
  void (*read)(Arguments& arguments, const Value& document, ReplayCase& out);
  // The examples of a micro-batch.
  std::vector<data::Example> (*examples)(const Value& line, const std::string& where);
};

std::span<const ReplayMethod> replay_methods();
const ReplayMethod& replay_method(const std::string& trainer, const std::string& where);  // UserError if there is none

// The groups.
std::vector<ReplayMethod> replayed_language();
std::vector<ReplayMethod> replayed_pairs();
std::vector<ReplayMethod> replayed_marks();
std::vector<ReplayMethod> replayed_classes();
std::vector<ReplayMethod> replayed_teaching();
std::vector<ReplayMethod> replayed_groups();
std::vector<ReplayMethod> replayed_online();

// Arguments that say which of a row's tokens are learned, as the recorded batches show.
void ignore_rows(Arguments& arguments);
// Of trainers whose loss has none.
void refuse_smoothing(Arguments& arguments);
// Rows of input_ids with labels.
std::vector<data::Example> language_rows(const Value& line, const std::string& where);

// The enum value whose YAML word this is.
template <class E>
E choice(Arguments& arguments, const std::string& name, const Value& value) {
  config::Problems problems;
  E out{};
  const std::string path = name, hint;
  if (!config::Codec<E>::read(value, out, {path, problems, hint})) arguments.not_built(name, to_yaml_flow(value));
  return out;
}
template <class E>
void take_choice(Arguments& arguments, const std::string& name, E& to) {
  if (const Value* value = arguments.take(name)) to = choice<E>(arguments, name, *value);
}

// Some of the weights, in the words 'start weights with model.layers.{i}.mlp.down_proj.weight multiplied by 0.9 ...'.
std::optional<ReplayCase::Scaled> scaled_weights(const std::string& words);
// The reference that a case describes in words; false: it has none.
bool read_reference(const Value& document, ReplayCase& out, const std::string& where);

// The recorded micro-batches as examples.
std::unique_ptr<train::BatchSource> read_recorded_batches(const std::filesystem::path& file,
                                                          const ReplayMethod& method);

}  // namespace easydel::probe
