#include "easydel/train/rloo_config.h"

namespace easydel::train {

void RlooKeys::settle(config::Keys& keys) {
  if (reward_clip_range && (reward_clip_range->size() != 2 || (*reward_clip_range)[0] > (*reward_clip_range)[1]))
    keys.refuse("reward_clip_range", "is not a lowest and a highest reward", "for example: [-5, 5]");
}

}  // namespace easydel::train
