// What the scheduler knows of requests and their sequences; for scheduler*.cpp alone.
#pragma once

#include "easydel/esurge/scheduler.h"

namespace easydel::esurge {

struct Scheduler::Sequence {
  enum class Place : uint8_t { waiting, running, ended };
  enum class Leaving : uint8_t { no, preempted, ended };  // once no unfinished plan has it

  Request* request = nullptr;
  int64_t choice = 0;
  bool forked = false;  // its request's other choices are sequences of their own
  Place place = Place::waiting;
  Leaving leaving = Leaving::no;
  std::vector<TokenId> generated;
  SequencePages pages;
  int64_t frequency_class = 0;

  int64_t computed = 0;   // tokens whose keys and values are there: of finished steps
  int64_t planned = 0;    // tokens in unfinished plans
  int64_t drawn = 0;      // tokens that unfinished plans will give
  int64_t in_flight = 0;  // unfinished plans that have it
  int64_t drafts = 0;     // proposed for the next step
  bool drafts_in_flight = false;
  bool has_scores = false;  // of a beam whose last token is computed: it waits for the others
  // Of layers with states: tokens that were speculated rightly before a wrong one, and are computed again because the
  // state went back to the one before them.
  int64_t redone = 0;

  int64_t admission = 0;    // its number, in order; it changes when the sequence comes back
  int64_t last_step = 0;    // that had tokens of it
  int64_t seen_step = 0;    // that has looked at it as a sequence with one token to compute
  uint64_t no_room_at = 0;  // the cache's version when it was not admitted
  int64_t cut_at = 0;       // a chunk ends here, for a sequence that waits for this beginning
  // Another sequence's prompt that is being computed begins with the same tokens.
  SequenceId waits_for = {};
  int64_t waits_admission = 0, waits_until = 0;

  int64_t cached_tokens = 0, preemptions = 0, recomputed_tokens = 0, max_computed = 0;
  bool counts_preemption = true;
};

struct Scheduler::Request {
  RequestId id = 0;
  SchedulerRequest asked;
  int64_t weights = 0;                               // number of the weights that compute it
  std::vector<std::unique_ptr<Sequence>> sequences;  // by choice; only the first until the prompt is computed
  int64_t unended = 0;
};

inline SequenceId id_of(const auto& sequence) { return {sequence.request->id, sequence.choice}; }

}  // namespace easydel::esurge
