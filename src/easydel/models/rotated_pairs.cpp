#include "easydel/models/rotated_pairs.h"

#include "easydel/base/error.h"

namespace easydel::models {
namespace {

// An odd number of dimensions uses the frequencies of the next even number, and rotates one more dimension if the head
// has it. YaRN's ramp then has one element less than the frequencies, which transformers can compute only if it is a
// single number.
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

[[noreturn]] void refuse_odd(const ConfigReader& config, const ops::RopeSpec& rope) {
  config.refuse_key("head_dim", str(rope.dim, " rotated dimensions; rotary positions need an even number"));
}

}  // namespace

void check_rotated_pairs(const ConfigReader& config, const ops::RopeSpec& rope, int64_t head_dim) {
  if (rope.dim % 2 != 0 && rope.angles != 1 && !rounds_up(rope, head_dim)) refuse_odd(config, rope);
}

void settle_odd_rotation(const ConfigReader& config, ops::RopeSpec& rope) {
  const bool one_angle = rope.type == ops::RopeType::standard || rope.type == ops::RopeType::linear ||
                         rope.type == ops::RopeType::dynamic || rope.type == ops::RopeType::llama3;
  if (rope.dim == 1 && one_angle)
    rope.angles = 1;
  else if (rope.dim % 2 != 0)
    refuse_odd(config, rope);
}

}  // namespace easydel::models
