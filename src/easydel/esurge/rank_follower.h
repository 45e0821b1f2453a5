// What a rank other than the first one does for an engine: it computes the steps that the first rank sends, and carries
// out its orders between them. No torch in this header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "easydel/esurge/rank_channel.h"
#include "easydel/esurge/saved_prefix_index.h"

namespace easydel::models {
class Model;
}

namespace easydel::esurge {

struct FollowerOptions {
  int64_t page_size = 128;
  RankPlace place = {};     // of this rank
  bool sends_rows = false;  // it is the first rank of a part other than the first rank's
  int64_t memory = 0;       // bytes that it has for pages
  double step_seconds = 30;
  // Loads a folder as the first rank loads new weights, on the same mesh. Null: there are none while the engine runs.
  std::function<std::shared_ptr<const models::Model>(const std::filesystem::path& folder)> load_model = {};
  // Called where the first rank changes its part of the weights in place (Engine::change_model_weights), at the same
  // time: what is collective there is so here. Null: that refuses.
  std::function<void()> change_weights = {};
};

// Returns when the first rank says that there are no more steps. UserError: the first rank has ended without a word, or
// a step failed here, which the first rank is told. An order that fails changes nothing here, and the first rank is
// told.
void follow_steps(std::shared_ptr<const models::Model> model, const RankConnection& first,
                  const FollowerOptions& options);

}  // namespace easydel::esurge
