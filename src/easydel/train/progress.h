// A run's progress for people: a bar on a terminal, plain lines elsewhere. Writes to the stream that it is given.
#pragma once

#include <cstdio>
#include <memory>

#include "easydel/train/report.h"
#include "easydel/train/trainer_config.h"

namespace easydel::train {

// tqdm and rich: a bar if `stream` is a terminal (in color unless NO_COLOR is set), otherwise lines; json: each report
// as a line of JSON. While the object lives, log lines are printed above the bar.
std::unique_ptr<Watcher> make_progress(ProgressBar kind, std::FILE* stream);

}  // namespace easydel::train
