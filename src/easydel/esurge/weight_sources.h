// What the weights of a rank were read from. Each rank of an engine reads its own part of them, so that ranks with
// other weights of the same shapes would compute together without an error. No torch in this header.
#pragma once

#include <string>

namespace easydel::models {
class Model;
}

namespace easydel::esurge {

class RankLeader;

// The configuration, the adapters that were loaded with the model, and which files there are in its folder; with
// `contents` a hash of each tensor, for which all of them are read. JSON.
std::string weight_sources(const models::Model& model, bool contents);

// On the first rank, between steps: asks the others for what theirs were read from. Contents are compared if files are
// not the same ones, as those of other machines. Returns "rank 1 has other weights than the first rank: ..." of the
// first that differs; empty: none does. UserError as RankLeader::ask().
std::string find_other_weights(RankLeader& ranks, const models::Model& model);
// The same as a UserError "esurge: ...".
void refuse_other_weights(RankLeader& ranks, const models::Model& model);

}  // namespace easydel::esurge
