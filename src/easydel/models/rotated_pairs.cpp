#include "easydel/models/rotated_pairs.h"

#include "easydel/base/error.h"

namespace easydel::models {
namespace {

// An odd number has the frequencies of one, and turns one dimension more, where the head has it. YaRN's ramp is one
// shorter than they are, which transformers can only compute with where it is a single number.
bool rounds_up(const ops::RopeSpec& rope, int64_t head_dim) {
  if (!rope.mrope_section.empty() || rope.dim >= head_dim) return false;
  switch (rope.type) {
    case ops::RopeType::standard:
    case ops::RopeType::linear:
    case ops::RopeType::dynamic:
    case ops::RopeType::llama3:
      return true;
    case ops::RopeType::yarn:
      return rope.dim == 3;
    default:
      return false;
  }
}

}  // namespace

void check_rotated_pairs(const ConfigReader& config, const ops::RopeSpec& rope, int64_t head_dim) {
  if (!rounds_up(rope, head_dim)) check_even_rotation(config, rope);
}

void check_even_rotation(const ConfigReader& config, const ops::RopeSpec& rope) {
  if (rope.dim % 2 != 0)
    config.refuse_key("head_dim", str(rope.dim, " rotated dimensions; rotary positions need an even number"));
}

}  // namespace easydel::models
