// How a run's configuration differs from the one that its checkpoint was written with. No torch.
#pragma once

#include <string>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::train {

struct ResumeChanges {
  struct Change {
    std::string key;  // "trainer.learning_rate"
    std::string before, now;
    std::string text() const;  // "trainer.learning_rate 0.001 -> 0.0001"
  };
  std::vector<Change> noted;    // the run goes on with the new values
  std::vector<Change> refused;  // the checkpoint's state means nothing with them
};

// Two configurations as state.json has them. Keys that change no update (where and when is saved, reported, evaluated)
// do not count, nor do keys that one of the two does not know. Data are compared by their fingerprint, not here.
ResumeChanges resume_changes(const Value& before, const Value& now);

std::string text_of(const std::vector<ResumeChanges::Change>& changes);  // joined by ", "

}  // namespace easydel::train
