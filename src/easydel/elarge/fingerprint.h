// Names what a model computes: equal fingerprints, requests and seeds give equal bytes. No torch in this header.
#pragma once

#include <string>

namespace easydel::models {
class Model;
}

namespace easydel::elarge {

// "fp_" and 16 hex digits: a hash of the configuration, of the weights as they are in memory (of codes: the files that
// they come from), of adapters, of number formats, the number of ranks and the order of additions. Reads all weights
// once. `formats`: the formats that the run chose, as a text.
std::string fingerprint(const models::Model& model, const std::string& formats);

}  // namespace easydel::elarge
